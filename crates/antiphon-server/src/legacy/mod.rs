//! Sessions: clients of the revisions up to 2025-11-25, which declare their capabilities once, in a handshake.
//!
//! ```text
//!  initialize ─▶ handshake ─▶ Session ◀── notifications, answers ─── client
//!                               │                                      ▲
//!        request ─▶ answer ─────┤                                      │
//!                     │         └─ notifications: lists, resources ────┤
//!                     ▼                                                │
//!        route, as every request ─▶ handler ─▶ asks ─▶ outbound_request, on the stream of the call
//!                     │
//!                     └─▶ downgrade: results and errors in the form of the session's version
//! ```
//!
//! Offers, admission and handlers are the same as for other requests: a request of a session becomes a
//! [`Request`](crate::Request) with the handshake's data as its metadata. Nothing of a session is sealed: it ends with
//! this process.

mod handshake;
mod notifications;

use crate::{
    errors::refusal::{Refusal, read_object},
    identity::Caller,
    layer::call::Served,
    reply::ReplyMessage,
    request::receive::{Request, params_or_empty},
    server::Server,
    session::Session,
    subscribe::SubscriptionHandle,
    task,
};
use antiphon_wire::{
    AskSupport, ErrorObject, Notification, RequestId, RequestMeta, RequestParams, SetLevelParams,
    SubscribeParams, method, write_result,
};
use futures_util::future::{AbortHandle, Abortable};
use serde::Deserialize;
use serde_json::json;

impl Server {
    /// Answers a legacy request without a session: only methods that need neither questions nor later notifications.
    pub(crate) async fn answer_without_session(
        &self,
        request: antiphon_wire::Request<'_>,
        version: antiphon_wire::ProtocolVersion,
        caller: &Caller<'_>,
    ) -> ReplyMessage {
        self.without_session(version).reply(self, request, caller).await
    }
}

/// The reason for which there is no result.
enum Fault {
    Error(ErrorObject),
    Refused(Refusal),
}

impl From<ErrorObject> for Fault {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error)
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A request under way; dropping it ends the entry.
struct ActiveRequest<'a> {
    session: &'a Session,
    id: RequestId,
    /// The length of its params, in bytes.
    bytes: usize,
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.session.state();
        state.running.remove(&self.id);
        state.running_bytes -= self.bytes;
    }
}

impl Session {
    /// Answers one request; `None` if it was cancelled. Messages before its reply, questions included, are put into the
    /// caller's outbox while the future is polled. Dropping the future cancels the request.
    pub(crate) async fn answer(
        &self,
        server: &Server,
        request: antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Option<ReplyMessage> {
        let (handle, registration) = AbortHandle::new_pair();
        let running = match self.begin(server, &request, handle) {
            Ok(running) => running,
            Err(error) => return Some(ReplyMessage::session_error(&request.id, &error)),
        };
        let answered = Abortable::new(self.reply(server, request, caller), registration).await.ok();
        drop(running);
        answered
    }

    fn begin(
        &self,
        server: &Server,
        request: &antiphon_wire::Request<'_>,
        handle: AbortHandle,
    ) -> Result<ActiveRequest<'_>, ErrorObject> {
        let (id, limits) = (&request.id, &server.0.runtime.limits);
        let bytes = request.params.map_or(0, |params| params.get().len());
        let mut state = self.state();
        if state.ended {
            return Err(ErrorObject::invalid_request("the session has ended"));
        }
        if state.running.contains_key(id) {
            return Err(ErrorObject::invalid_request("a request with this id is under way"));
        }
        // The first request may be of any length that the transport accepts.
        let too_long = state.running_bytes > 0 && state.running_bytes + bytes > limits.session_request_bytes;
        if too_long || state.running.len() >= limits.session_requests {
            return Err(Refusal::Busy.to_error());
        }
        state.running.insert(id.clone(), handle);
        state.running_bytes += bytes;
        drop(state);
        Ok(ActiveRequest { session: self, id: id.clone(), bytes })
    }

    async fn reply(
        &self,
        server: &Server,
        request: antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> ReplyMessage {
        let id = request.id.clone();
        // What a layer may see goes its way.
        let passes_layers = server.0.layers.is_some() && self.has_method_of_its_own(&request.method);
        let answered = match (!passes_layers).then(|| self.answer_in_session(server, &request, caller)) {
            Some(Some(answered)) => answered,
            _ => self.routed(server, request, caller).await,
        };
        match answered {
            Ok(body) => ReplyMessage::result(body),
            Err(Fault::Error(error)) => ReplyMessage::session_error(&id, &error),
            Err(Fault::Refused(refusal)) => {
                let error = crate::session::downgrade_refusal(&refusal);
                ReplyMessage::session_error(&id, &error).refused_by(refusal)
            }
        }
    }

    /// Answers the methods that exist in sessions only.
    fn answer_in_session(
        &self,
        server: &Server,
        request: &antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Option<Result<Vec<u8>, Fault>> {
        let done = match &*request.method {
            // > The receiver **MUST** respond promptly with an empty response
            method::PING => Ok(()),
            // > The `initialize` request **MUST NOT** be part of a JSON-RPC batch
            method::INITIALIZE if self.0.subscription.is_none() => {
                Err(ErrorObject::invalid_request("`initialize` is sent alone: it opens a session").into())
            }
            method::INITIALIZE => Err(ErrorObject::invalid_request("the session is open already").into()),
            method::LOGGING_SET_LEVEL => self.set_level(server, request).map_err(Fault::Error),
            method::RESOURCES_SUBSCRIBE => self.subscribe(server, request, caller),
            method::RESOURCES_UNSUBSCRIBE => self.unsubscribe(server, request).map_err(Fault::Error),
            method::DISCOVER | method::SUBSCRIPTIONS_LISTEN => {
                Err(ErrorObject::method_not_found(&request.method).into())
            }
            _ => return None,
        };
        Some(done.and_then(|()| {
            write_result(&request.id, &json!({})).map_err(|_fault| ErrorObject::internal().into())
        }))
    }

    /// Returns whether this method exists in sessions only, and is more than a sign of life. Layers see its requests.
    pub(crate) fn has_method_of_its_own(&self, method: &str) -> bool {
        matches!(
            method,
            method::LOGGING_SET_LEVEL | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE
        )
    }

    /// Answers such a request behind the layers.
    pub(crate) fn answer_layered(
        &self,
        server: &Server,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<Served, Refusal> {
        let (id, method, params) = (request.id.clone(), request.method.clone(), Some(request.text));
        let answered = self.answer_in_session(server, &antiphon_wire::Request { id, method, params }, caller);
        match answered {
            Some(Ok(body)) => Ok(Served::Body(body)),
            Some(Err(Fault::Error(error))) => Err(Refusal::Again(Box::new(error))),
            Some(Err(Fault::Refused(refusal))) => Err(refusal),
            None => Err(Refusal::Internal),
        }
    }

    fn set_level(&self, server: &Server, request: &antiphon_wire::Request<'_>) -> Result<(), ErrorObject> {
        if !server.0.offers.load().profile.logging {
            return Err(ErrorObject::method_not_found(&request.method));
        }
        // > Invalid log level: `-32602` (Invalid params)
        let params: SetLevelParams = params_of(request)?;
        self.state().level = Some(params.level);
        Ok(())
    }

    /// A subscription to a resource requires the same scopes as reading it.
    fn subscribe(
        &self,
        server: &Server,
        request: &antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<(), Fault> {
        let subscription = self.subscription(server, request)?;
        let params: SubscribeParams = params_of(request)?;
        let inner = &server.0;
        let info = self.caller_info(server, caller);
        let scopes = inner.offers.load().lists.scopes_of(std::slice::from_ref(&params.uri), Some(&info));
        inner.runtime.require_scopes(&scopes, caller)?;
        subscription.set_caller(info);
        subscription.add_uri(params.uri, &inner.runtime.limits).map_err(|refusal| refusal.to_error().into())
    }

    fn unsubscribe(&self, server: &Server, request: &antiphon_wire::Request<'_>) -> Result<(), ErrorObject> {
        let subscription = self.subscription(server, request)?;
        let params: SubscribeParams = params_of(request)?;
        subscription.remove_uri(&params.uri);
        Ok(())
    }

    fn subscription(
        &self,
        server: &Server,
        request: &antiphon_wire::Request<'_>,
    ) -> Result<&SubscriptionHandle, ErrorObject> {
        let tells = server.0.offers.load().profile.resource_updates;
        let subscription = self.0.subscription.as_ref().filter(|_| tells);
        subscription.ok_or_else(|| ErrorObject::method_not_found(&request.method))
    }

    /// Answers the other methods like any request, with metadata from the handshake.
    async fn routed(
        &self,
        server: &Server,
        request: antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<Vec<u8>, Fault> {
        let request = self.translate(request, caller)?;
        // The server may have been built outside of a runtime.
        task::begin(&server.0.runtime);
        Ok(server.route(&server.current_offers(), &request, caller).await?)
    }

    /// Runs the handler of a notification of an extension, with metadata from the handshake.
    pub(crate) async fn notify_extension(
        &self,
        server: &Server,
        notification: &Notification<'_>,
        caller: &Caller<'_>,
    ) -> Result<(), ReplyMessage> {
        let (id, method, params) = (RequestId::from(0_u64), notification.method.clone(), notification.params);
        let request = self.translate(antiphon_wire::Request { id, method, params }, caller);
        let mut request = request.map_err(|error| ReplyMessage::not_accepted(&error))?;
        request.is_notification = true;
        let routed = server.route(&server.current_offers(), &request, caller).await;
        routed.map(drop).map_err(|refusal| {
            ReplyMessage::not_accepted(&crate::session::downgrade_refusal(&refusal)).refused_by(refusal)
        })
    }

    fn translate<'a>(
        &'a self,
        request: antiphon_wire::Request<'a>,
        caller: &Caller<'_>,
    ) -> Result<Request<'a>, ErrorObject> {
        let text = params_or_empty(request.params);
        let mut params: RequestParams<'_> = read_object(text, "params")?;
        // These members have no meaning in a session.
        (params.input_responses, params.request_state) = (None, None);
        let mut meta: RequestMeta<'_> = match params.meta {
            Some(meta) => read_object(meta, "params._meta")?,
            None => RequestMeta::default(),
        };
        // Without a stream for questions, nothing can be asked.
        meta.asks = Some(if caller.outbox.is_some() { self.asks() } else { AskSupport::NONE });
        meta.client_info = self.client_info();
        meta.log_level = Some(self.level());
        Ok(Request::of_session(self, request, params, meta, text))
    }
}

fn params_of<'a, T: Deserialize<'a>>(request: &antiphon_wire::Request<'a>) -> Result<T, ErrorObject> {
    let text = request.params.ok_or_else(|| ErrorObject::invalid_params("params is missing"))?;
    read_object::<T>(text, "params")
}
