//! One request on a session, with the asks and notifications that arrive before its response.

use crate::{
    asks::{errors::AskFault, questions::Origin},
    request::{
        deadline::RequestDeadline,
        fault::RequestFault,
        notifications::NotificationSink,
        spec::{BodyWriter, RequestSpec},
    },
    session::{server_asks::ServerAsks, shared::Shared},
    transport::{OutgoingRequest, ServerMessage, ServerReply},
};
use antiphon_wire::{Meta, method};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::mpsc;

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
        let body = write(&id, meta).map_err(RequestFault::Unwritable)?;
        let request = spec.request(id, self.version.clone(), body);
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
                if matches!(&*notification.method, method::PROGRESS | method::MESSAGE) =>
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
            method: spec.method,
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
