//! The revisions up to 2025-11-25 on the same endpoint: sessions, the stream of a GET, and streams that can be resumed.
//!
//! ```text
//!  POST ─▶ endpoint ─▶ request: a task of its own ──▶ Writer ─▶ streams ─▶ Reader ─▶ events ─▶ connection
//!                        session.call, outbox                event log                           │ breaks
//!  GET, Last-Event-ID ─────────────────────────────────────────────────────▶ Reader ─▶ events ◀───┘
//! ```
//!
//! A request continues when its connection breaks: its events are stored, within limits, for a client that reconnects.

mod event_log;
mod request;
mod session_table;
mod streams;

use crate::{
    identity::Caller,
    outbox::Outbox,
    quota::RequestBudget,
    reply::ReplyMessage,
    request::receive::without_session,
    serve::{
        http::{
            HttpOptions,
            auth::Authorized,
            body::Rejection,
            checks::{check_legacy_version, names_session, single_or_none},
            fields::{Accepts, LAST_EVENT_ID, MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
            reply::{HttpReply, stream_response},
            request_body::RequestBody,
        },
        is_batch,
    },
    server::message_service::{MessageService, MessageSession},
};
use antiphon_wire::{ErrorObject, Incoming, ProtocolVersion, Request, method};
use event_log::EventId;
use http::{HeaderMap, HeaderValue, Method, StatusCode, request::Parts};
use request::{BatchService, SessionEvents, StreamTimes, session_not_found};
use session_table::{OpenSession, SessionTable};
use std::{fmt, sync::Arc};
use streams::{ResumeError, STANDALONE};

/// Returns whether this request is a POST of a session.
///
/// > An `Mcp-Session-Id` header on a request: ignore it
///
/// The header of a modern request is ignored.
pub(crate) fn is_of_session(parts: &Parts) -> bool {
    parts.method == Method::POST && names_session(&parts.headers) && !says_modern(&parts.headers)
}

/// Returns whether the headers name a modern version.
fn says_modern(headers: &HeaderMap) -> bool {
    version(headers).is_some_and(ProtocolVersion::is_modern_text)
}

/// Returns whether the headers name an earlier version, or none.
fn may_be_legacy(headers: &HeaderMap) -> bool {
    version(headers).is_none_or(|version| ProtocolVersion::legacy(version).is_some())
}

fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get(&MCP_PROTOCOL_VERSION).map(|version| version.to_str().unwrap_or_default())
}

/// The part of an endpoint that serves earlier revisions, with their sessions.
pub(crate) struct Endpoint<S: MessageService> {
    server: S,
    options: Arc<HttpOptions>,
    budget: RequestBudget,
    sessions: SessionTable<S::Session>,
}

/// A session, and its id as the headers of a request name it.
type NamedSession<'a, S> = (Arc<OpenSession<<S as MessageService>::Session>>, &'a str);

impl<S: MessageService> Endpoint<S> {
    pub(crate) fn new(server: S, options: Arc<HttpOptions>, budget: RequestBudget, outbox: Outbox) -> Self {
        let sessions = SessionTable::new(options.sessions.idle, options.sessions.limits, outbox);
        Self { server, options, budget, sessions }
    }

    /// Ends all sessions, and cancels their requests.
    pub(crate) fn end_all(&self) {
        self.sessions.end_all();
    }

    /// Answers a GET or DELETE.
    pub(crate) fn get_or_delete(&self, parts: &Parts, authorized: Authorized) -> HttpReply {
        let open = match self.session_of(parts, authorized) {
            Ok((open, _)) if parts.method == Method::GET => open,
            Ok((_, id)) => {
                // > Clients that no longer need a particular session [...] **SHOULD** send an HTTP DELETE
                self.sessions.end(id);
                return HttpReply::Empty(StatusCode::NO_CONTENT);
            }
            Err(reply) => return *reply,
        };
        self.listen(&open, parts, authorized).unwrap_or_else(HttpReply::Rejection)
    }

    /// Opens the stream of a GET, or resumes the one that `Last-Event-ID` names.
    fn listen(
        &self,
        open: &OpenSession<S::Session>,
        parts: &Parts,
        authorized: Authorized,
    ) -> Result<HttpReply, Rejection> {
        let last = match single_or_none(&parts.headers, &LAST_EVENT_ID) {
            Ok(None) => None,
            Ok(Some(text)) => {
                Some(EventId::parse(text.as_bytes()).ok_or_else(|| resume_rejection(&ResumeError::Unknown))?)
            }
            Err(_) => return Err(resume_rejection(&ResumeError::Unknown)),
        };
        if last.is_none_or(|last| last.stream == STANDALONE)
            && let Err(rejected) = open.session.may_listen(&authorized.caller(parts))
        {
            return Ok(HttpReply::json(rejected));
        }
        let reader = match last {
            None => open.streams.standalone().ok_or_else(|| {
                let text =
                    "This session has a stream already: one GET at a time, but for those with Last-Event-ID";
                Rejection { unread: false, ..Rejection::new(StatusCode::CONFLICT, text) }
            })?,
            Some(last) => match open.streams.resume(last) {
                Ok(reader) => reader,
                // 204 stops a client that would reconnect again and again.
                Err(ResumeError::Complete) => return Ok(HttpReply::Empty(StatusCode::NO_CONTENT)),
                Err(fault) => return Err(resume_rejection(&fault)),
            },
        };
        let (times, primes) = (self.times(), open.session.version().has_priming_events());
        let priming = (last.is_none() && primes).then(|| times.priming(&reader));
        let is_standalone = reader.is_standalone();
        let mut events =
            SessionEvents::new(Some(reader), times.keep_alive).ending_with(authorized.expired(&self.server));
        if is_standalone {
            events = events.with_session_messages(&open.session, &open.outbox, open.streams.to_standalone());
        }
        let events = priming.into_iter().fold(events, SessionEvents::first);
        Ok(HttpReply::Response(Box::new(stream_response(events))))
    }

    /// Answers a POST that names its session.
    pub(crate) async fn post(
        &self,
        parts: Parts,
        body: RequestBody,
        authorized: Authorized,
        accepts: Accepts,
    ) -> HttpReply {
        let open = match self.session_of(&parts, authorized) {
            Ok((open, _)) => open,
            Err(reply) => return *reply,
        };
        let has_request = match receive_unanswered(&open.session, &body, &authorized.caller(&parts)) {
            Ok(has_request) => has_request,
            Err(reply) => return HttpReply::json(reply),
        };
        if has_request {
            return request::respond(&self.server, &open, parts, body, authorized, accepts, self.times())
                .await;
        }
        let caller = authorized.caller(&parts);
        match Box::pin(request::notify(&self.server, &open.session, &body, &caller)).await {
            // > If the server accepts the input, the server **MUST** return HTTP status code 202 Accepted with no body.
            Ok(()) => HttpReply::Accepted,
            Err(reply) => HttpReply::json(reply),
        }
    }

    /// Answers a message of an earlier revision that names no session.
    pub(crate) async fn without_session(
        &self,
        message: Incoming<'_>,
        caller: &Caller<'_>,
        headers: &HeaderMap,
    ) -> HttpReply {
        let request = match message {
            Incoming::Request(request) if request.method == method::INITIALIZE => {
                return self.initialize(request, caller);
            }
            // The headers name a version that is no earlier one.
            message if !may_be_legacy(headers) => {
                return HttpReply::json(without_session(message).into());
            }
            Incoming::Request(request) => request,
            Incoming::Notification(_) => return HttpReply::Accepted,
            Incoming::Response(_) => {
                let error =
                    ErrorObject::invalid_request("a response is of a session: Mcp-Session-Id is missing");
                return HttpReply::json(ReplyMessage::error(None, &error));
            }
        };
        match check_legacy_version(headers, None) {
            Ok(version) => {
                let version = version.unwrap_or(ProtocolVersion::V2025_03_26);
                HttpReply::json(self.server.call_without_session(request, version, caller).await)
            }
            Err(error) => HttpReply::json(ReplyMessage::error(Some(&request.id), &error)),
        }
    }

    /// Answers a batch that names no session; `None` if the body is no batch, or its revision has no batches.
    pub(crate) async fn batch_without_session(
        &self,
        body: &[u8],
        caller: Caller<'_>,
        headers: &HeaderMap,
    ) -> Option<HttpReply> {
        let version = check_legacy_version(headers, None).ok()?;
        let version = version.unwrap_or(ProtocolVersion::V2025_03_26);
        if !is_batch(body) || !version.has_batches() {
            return None;
        }
        match request::receive_unanswered(body, |_| ()) {
            Ok(true) => {}
            Ok(false) => return Some(HttpReply::Accepted),
            Err(error) => return Some(HttpReply::json(ReplyMessage::error(None, &error))),
        }
        let array = BatchService::Server(&self.server, &version).answer_all(body, &caller).await;
        Some(array.map_or(HttpReply::Accepted, |array| HttpReply::json(ReplyMessage::result(array))))
    }

    fn initialize(&self, request: Request<'_>, caller: &Caller<'_>) -> HttpReply {
        // Frees the places of idle sessions.
        self.sessions.sweep();
        let (request_id, account) = (request.id.clone(), self.budget.account(caller));
        let (session, reply) = loop {
            match self.server.initialize(request.clone(), caller) {
                Ok(opened) => break opened,
                Err(refused) => {
                    let full = refused.sessions_full();
                    if !full.is_some_and(|full| self.sessions.make_room(account, full)) {
                        return HttpReply::json(refused);
                    }
                }
            }
        };
        let id = self
            .sessions
            .add(session, account, &self.options.sessions.prefix)
            .ok()
            .and_then(|id| HeaderValue::from_str(&id).ok());
        let Some(id) = id else {
            tracing::error!("no id for a session: the operating system gave no random bytes");
            return HttpReply::json(ReplyMessage::error(Some(&request_id), &ErrorObject::internal()));
        };
        // > by including it in an `MCP-Session-Id` header on the HTTP response containing the `InitializeResult`
        HttpReply::json(reply).with_field(MCP_SESSION_ID.clone(), id)
    }

    /// Returns the session that the headers name, if this caller opened it.
    fn session_of<'a>(
        &self,
        parts: &'a Parts,
        authorized: Authorized,
    ) -> Result<NamedSession<'a, S>, Box<HttpReply>> {
        let bad = |error| Box::new(HttpReply::json(ReplyMessage::error(None, &error)));
        let id = single_or_none(&parts.headers, &MCP_SESSION_ID).map_err(bad)?.unwrap_or_default();
        let caller = authorized.caller(parts);
        let open = self.sessions.find(id).filter(|open| open.session.is_opened_by(&caller));
        let open = open.ok_or_else(|| Box::new(HttpReply::Rejection(session_not_found())))?;
        open.touch();
        check_legacy_version(&parts.headers, Some(open.session.version())).map_err(bad)?;
        Ok((open, id))
    }

    fn times(&self) -> StreamTimes {
        StreamTimes { keep_alive: self.options.keep_alive, retry: self.options.sessions.retry }
    }
}

impl<S: MessageService> fmt::Debug for Endpoint<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("sessions", &self.sessions).finish_non_exhaustive()
    }
}

/// Passes the notifications and responses of a body to the session. Returns whether the body holds a request.
///
/// # Errors
/// The reply to the whole body, if it cannot be read, or if the caller's token may not send one of the responses.
fn receive_unanswered(
    session: &impl MessageSession,
    body: &[u8],
    caller: &Caller<'_>,
) -> Result<bool, ReplyMessage> {
    let mut rejected = None;
    let mut receive = |message: Incoming<'_>| match message {
        Incoming::Notification(notification) => {
            session.notify(&notification);
        }
        Incoming::Response(response) => {
            if let Err(reply) = session.respond(response, caller) {
                rejected = Some(reply);
            }
        }
        Incoming::Request(_) => {}
    };
    let has_request = if is_batch(body) && session.version().has_batches() {
        request::receive_unanswered(body, receive).map_err(|error| ReplyMessage::error(None, &error))?
    } else {
        match Incoming::parse(body) {
            Ok(Incoming::Request(_)) => true,
            Ok(message) => {
                receive(message);
                false
            }
            Err(fault) => return Err(ReplyMessage::error(fault.id.as_ref(), &fault.error)),
        }
    };
    rejected.map_or(Ok(has_request), Err)
}

/// Returns the rejection of a stream that cannot be resumed.
fn resume_rejection(fault: &ResumeError) -> Rejection {
    let (status, text) = match fault {
        ResumeError::Lost => (
            StatusCode::GONE,
            "The events after this Last-Event-ID were discarded: the stream cannot be resumed",
        ),
        ResumeError::Over => return session_not_found(),
        ResumeError::Unknown | ResumeError::Complete => {
            (StatusCode::BAD_REQUEST, "Last-Event-ID names no event of this session")
        }
    };
    Rejection { unread: false, ..Rejection::new(status, text) }
}
