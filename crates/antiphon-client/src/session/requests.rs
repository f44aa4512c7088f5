//! Sends requests in the way of the server's era. On a session, asks and notifications arrive before the response.

use crate::{
    asks::{callbacks::AskFault, questions::Origin},
    layer::{Layers, Reply, Request},
    request::{
        BodyWriter, NotificationSink, RequestSpec,
        deadline::RequestDeadline,
        fault::{RequestFault, common_version, supported},
        note_leg,
    },
    session::{Connection, EraState, discover, server_asks::ServerAsks, shared::Shared},
    trace::{self, otel},
    transport::{OutgoingRequest, ServerMessage, ServerReply},
};
use antiphon_wire::{ErrorCode, Implementation, Meta, method};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::mpsc;
use tracing::{Instrument as _, Span};

impl Connection {
    /// Sends a request and returns its result. Sends it once more if the server names another version that is supported
    /// here.
    pub(crate) async fn request(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        match &self.layers {
            None => self.request_unlayered(spec, write).await,
            Some(layers) => Box::pin(self.request_layered(layers, spec, write)).await,
        }
    }

    async fn request_layered(
        &self,
        layers: &Layers,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        let request = |server| Request::new(spec, self.core.identity(), server);
        let send = |request: Request| async move {
            self.request_unlayered(&spec.with_added(&request.added), write).await.map(Reply::of)
        };
        layers.run(request, send).await.map(Reply::into_result)
    }

    async fn request_unlayered(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        // A leg is in the span of its call.
        let has_span =
            !matches!(&*spec.method, method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ);
        let span = if has_span { self.core.span(&spec.method, spec.name) } else { Span::none() };
        let result = self.request_in_common_version(spec, write).instrument(span.clone()).await;
        result.map_err(|fault| {
            let code = fault.server_error().map(|error| error.code.0);
            trace::failed(&span, code, "_OTHER");
            self.with_own_versions(fault)
        })
    }

    /// Adds the versions of the mode to a fault of versions.
    fn with_own_versions(&self, fault: RequestFault) -> RequestFault {
        fault.with_own_versions(&self.mode.versions(self.transport.sessions().is_some()))
    }

    async fn request_in_common_version(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        // > The client **SHOULD** select a mutually supported version from the `supported` list and retry the request,
        // > or surface an error to the user if no compatible version exists.
        let reply = match self.send(spec, write).await? {
            Err(error) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                let theirs = supported(&error);
                match common_version(theirs.iter().map(String::as_str)).filter(|_| self.may_change_version())
                {
                    Some(version) => {
                        self.core.change_version(version);
                        self.send(spec, write).await?
                    }
                    None if Box::pin(self.follow_to_session(&theirs)).await? => {
                        self.send(spec, write).await?
                    }
                    None => Err(error),
                }
            }
            reply => reply,
        };
        let result = reply.map_err(|error| RequestFault::server(error, self.core.handlers.declared))?;
        if let Some(info) = server_info(&result) {
            self.core.known().info = Some(info);
        }
        Ok(result)
    }

    async fn send(
        &self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        if self.is_modern() {
            self.send_modern(spec, write).await
        } else {
            Box::pin(self.send_by_era(spec, write)).await
        }
    }

    /// Detects the era if it is unknown, and opens a session if a legacy server has none.
    pub(crate) async fn settle(&self) -> Result<EraState, RequestFault> {
        if let EraState::Unknown = self.era_state() {
            let spec = RequestSpec::single(method::DISCOVER, self.core.bounds.leg_timeout);
            let reply = self.send_by_era(&spec, &discover).await;
            let reply = reply.map_err(|fault| self.with_own_versions(fault))?;
            if let (EraState::Unknown, Err(error)) = (self.era_state(), reply) {
                return Err(RequestFault::server(error, self.core.handlers.declared));
            }
        }
        match self.era_state() {
            EraState::Legacy(session) if session.is_over() => self.drop_session(&session),
            EraState::Ended => {}
            other => return Ok(other),
        }
        self.session().await.map(EraState::Legacy)
    }
}

#[derive(Deserialize)]
struct WithMeta<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
}

/// The identity of the server, which any result may hold.
fn server_info(result: &RawValue) -> Option<Implementation> {
    let meta = serde_json::from_str::<WithMeta<'_>>(result.get()).ok()?.meta?;
    serde_json::from_str::<Meta>(meta.get()).ok()?.server_info()
}

impl Shared {
    /// Sends a request and waits for its response. The time in which a person is asked does not count.
    pub(crate) async fn exchange(
        self: &Arc<Self>,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<ServerReply, RequestFault> {
        let id = self.core.next_id();
        let deadline = RequestDeadline::new(spec.timeout, self.core.bounds.progress_stretches);
        let mut sink = NotificationSink::new(&self.core, spec, &deadline);
        let mut meta = Meta::default();
        sink.request_progress(&id, &mut meta);
        otel::inject(&mut meta);
        note_leg(spec, &id);
        if let Some(added) = spec.added {
            added.add_to(&mut meta);
        }
        let body = write(&id, meta).map_err(RequestFault::Unwritable)?;
        let headers = spec.added_headers().collect();
        let request = OutgoingRequest { headers, ..spec.request(id, self.version.clone(), body) };
        let work = self.under_way(request, spec, &mut sink, &deadline);
        deadline.within(work).await.map_err(RequestFault::Timeout)?
    }

    async fn under_way(
        self: &Arc<Self>,
        request: OutgoingRequest,
        spec: &RequestSpec<'_>,
        sink: &mut NotificationSink<'_>,
        deadline: &RequestDeadline,
    ) -> Result<ServerReply, RequestFault> {
        let limit = self.core.bounds.max_asks;
        let (to_asked, mut asked) = mpsc::channel(limit.max(1));
        let flooded = AtomicBool::new(false);
        let mut on_message = |message| match message {
            ServerMessage::Notification(notification)
                if notification.waits.is_some()
                    || matches!(&*notification.method, method::PROGRESS | method::MESSAGE) =>
            {
                sink.on_notification(notification);
            }
            ServerMessage::Notification(notification) => self.on_notification(&notification),
            ServerMessage::Request(request) => {
                if to_asked.try_send(self.open_asks.received(request)).is_err() {
                    flooded.store(true, Ordering::Relaxed);
                }
            }
        };
        let mut exchange = self.link.exchange(request, &mut on_message);
        let origin = spec.origin.cloned().unwrap_or_else(|| Origin {
            server: self.server.clone(),
            method: spec.method.clone(),
            target: spec.name.unwrap_or_default().to_owned(),
            arguments: spec.arguments.cloned(),
        });
        let mut asks = ServerAsks::new(self, origin);
        let most = self.core.bounds.max_rounds.saturating_mul(u32::try_from(limit).unwrap_or(u32::MAX));
        let mut open = self.open_asks.count.subscribe();
        deadline.pause(*open.borrow_and_update() > 0);
        let ended = |fault| Err(RequestFault::Ask(Box::new(fault)));
        loop {
            tokio::select! {
                biased;
                // Dropping the exchange cancels the request.
                reply = &mut exchange => {
                    return match asks.fault() {
                        Some(fault) => ended(fault),
                        None => reply.map_err(RequestFault::Transport),
                    };
                }
                Some(request) = asked.recv() => {
                    if let Err(fault) = asks.take(request) {
                        return ended(fault);
                    }
                }
                Some(fault) = asks.next() => {
                    if let Some(fault) = fault {
                        return ended(fault);
                    }
                }
                Ok(()) = open.changed() => {}
            }
            deadline.pause(*open.borrow_and_update() > 0);
            if flooded.load(Ordering::Relaxed) {
                return ended(AskFault::TooManyAsks { asks: limit.saturating_add(1), limit });
            }
            if asks.rounds() > most {
                return ended(AskFault::RoundLimit { rounds: most });
            }
        }
    }
}
