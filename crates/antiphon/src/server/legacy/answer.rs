//! One request of a session.

use super::session::Session;
use crate::server::{
    Caller, ReplyMessage,
    bearer::require_scopes,
    hub::Membership,
    receive::{Request, read_object},
    refusal::Refusal,
    route::Routed,
};
use antiphon_wire::{
    AskSupport, ErrorObject, RequestId, RequestMeta, RequestParams, SetLevelParams, SubscribeParams, method,
    write_result,
};
use futures_util::future::{AbortHandle, Abortable};
use serde::Deserialize;
use serde_json::json;

#[cfg(feature = "http")]
impl crate::server::Server {
    /// Answers a legacy request that belongs to no session: what needs nobody to be asked, and nothing to be told later.
    pub(crate) async fn answer_without_session(
        &self,
        request: antiphon_wire::Request<'_>,
        version: antiphon_wire::ProtocolVersion,
        caller: &Caller<'_>,
    ) -> ReplyMessage {
        self.without_session(version).reply(request, caller).await
    }
}

/// Why there is no result.
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

/// A request under way, until it is dropped.
struct Running<'a> {
    session: &'a Session,
    id: RequestId,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.session.state().running.remove(&self.id);
    }
}

impl Session {
    /// The reply to a ping, which needs no session.
    pub(crate) fn pong(id: &RequestId) -> ReplyMessage {
        match write_result(id, &json!({})) {
            Ok(body) => ReplyMessage::result(body),
            Err(_fault) => ReplyMessage::of_session(id, &ErrorObject::internal()),
        }
    }

    /// Answers one request; `None` if it was cancelled. What it sends before its reply, asks among it, is left in the
    /// caller's outbox while this is polled. Dropping this cancels the request.
    pub(crate) async fn answer(
        &self,
        request: antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Option<ReplyMessage> {
        let (handle, registration) = AbortHandle::new_pair();
        let running = match self.begin(&request.id, handle) {
            Ok(running) => running,
            Err(error) => return Some(ReplyMessage::of_session(&request.id, &error)),
        };
        let answered = Abortable::new(self.reply(request, caller), registration).await.ok();
        drop(running);
        answered
    }

    fn begin(&self, id: &RequestId, handle: AbortHandle) -> Result<Running<'_>, ErrorObject> {
        let mut state = self.state();
        if state.ended {
            return Err(ErrorObject::invalid_request("the session has ended"));
        }
        if state.running.contains_key(id) {
            return Err(ErrorObject::invalid_request("a request with this id is under way"));
        }
        if state.running.len() >= self.0.server.0.limits.session_requests {
            return Err(Refusal::Busy.to_error());
        }
        state.running.insert(id.clone(), handle);
        drop(state);
        Ok(Running { session: self, id: id.clone() })
    }

    async fn reply(&self, request: antiphon_wire::Request<'_>, caller: &Caller<'_>) -> ReplyMessage {
        let id = request.id.clone();
        let answered = match self.own(&request, caller) {
            Some(answered) => answered,
            None => self.routed(request, caller).await,
        };
        match answered {
            Ok(body) => ReplyMessage::result(body),
            Err(Fault::Error(error)) => ReplyMessage::of_session(&id, &error),
            Err(Fault::Refused(refusal)) => {
                let error = super::refused_in_words_of(&refusal);
                ReplyMessage::of_session(&id, &error).refused_by(refusal)
            }
        }
    }

    /// What only a session knows.
    fn own(
        &self,
        request: &antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Option<Result<Vec<u8>, Fault>> {
        let done = match &*request.method {
            // > The receiver **MUST** respond promptly with an empty response
            method::PING => Ok(()),
            // > The `initialize` request **MUST NOT** be part of a JSON-RPC batch
            method::INITIALIZE if self.0.membership.is_none() => {
                Err(ErrorObject::invalid_request("`initialize` is sent alone: it opens a session").into())
            }
            method::INITIALIZE => Err(ErrorObject::invalid_request("the session is open already").into()),
            method::LOGGING_SET_LEVEL => self.set_level(request).map_err(Fault::Error),
            method::RESOURCES_SUBSCRIBE => self.subscribe(request, caller),
            method::RESOURCES_UNSUBSCRIBE => self.unsubscribe(request).map_err(Fault::Error),
            method::DISCOVER | method::SUBSCRIPTIONS_LISTEN => {
                Err(ErrorObject::method_not_found(&request.method).into())
            }
            _ => return None,
        };
        Some(done.and_then(|()| {
            write_result(&request.id, &json!({})).map_err(|_fault| ErrorObject::internal().into())
        }))
    }

    fn set_level(&self, request: &antiphon_wire::Request<'_>) -> Result<(), ErrorObject> {
        if !self.0.server.0.registry.load().profile.logging {
            return Err(ErrorObject::method_not_found(&request.method));
        }
        // > Invalid log level: `-32602` (Invalid params)
        let params: SetLevelParams = params_of(request)?;
        self.state().level = Some(params.level);
        Ok(())
    }

    /// What is told of a resource needs what reading it needs.
    fn subscribe(&self, request: &antiphon_wire::Request<'_>, caller: &Caller<'_>) -> Result<(), Fault> {
        let membership = self.membership(request)?;
        let params: SubscribeParams = params_of(request)?;
        let inner = &self.0.server.0;
        let scopes = inner.registry.load().lists.scopes_of(std::slice::from_ref(&params.uri));
        require_scopes(&scopes, caller)?;
        membership.name(params.uri, &inner.limits).map_err(|refusal| refusal.to_error().into())
    }

    fn unsubscribe(&self, request: &antiphon_wire::Request<'_>) -> Result<(), ErrorObject> {
        let membership = self.membership(request)?;
        let params: SubscribeParams = params_of(request)?;
        membership.forget(&params.uri);
        Ok(())
    }

    fn membership(&self, request: &antiphon_wire::Request<'_>) -> Result<&Membership, ErrorObject> {
        let tells = self.0.server.0.registry.load().profile.resource_updates;
        let membership = self.0.membership.as_ref().filter(|_| tells);
        membership.ok_or_else(|| ErrorObject::method_not_found(&request.method))
    }

    /// The same as any other request, with what the handshake said in the place of its metadata.
    async fn routed(
        &self,
        request: antiphon_wire::Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<Vec<u8>, Fault> {
        let request = self.translate(request, caller)?;
        match self.0.server.route(&request, caller).await {
            Ok(Routed::Body(body)) => Ok(body),
            // Its method was refused above.
            Ok(Routed::Open(_)) => Err(ErrorObject::internal().into()),
            Err(refusal) => Err(Fault::Refused(refusal)),
        }
    }

    fn translate<'a>(
        &'a self,
        request: antiphon_wire::Request<'a>,
        caller: &Caller<'_>,
    ) -> Result<Request<'a>, ErrorObject> {
        // A constant: it can be read.
        let text = request.params.unwrap_or_else(|| serde_json::from_str("{}").expect("an object"));
        let mut params: RequestParams<'_> = read_object(text, "params")?;
        // They mean nothing here.
        (params.input_responses, params.request_state) = (None, None);
        let mut meta: RequestMeta<'_> = match params.meta {
            Some(meta) => read_object(meta, "params._meta")?,
            None => RequestMeta::default(),
        };
        // Where there is no stream for it, nothing can be asked.
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

impl ReplyMessage {
    /// An error in a session: HTTP has no status for it.
    pub(super) fn of_session(id: &RequestId, error: &ErrorObject) -> Self {
        Self { status: 200, ..Self::error(Some(id), error) }
    }
}
