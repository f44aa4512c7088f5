//! `initialize`: the handshake that opens a session.

use crate::{
    errors::refusal::{Refusal, read_object},
    identity::{Caller, account::CallerInfo},
    options::limits::CLIENT_INFO,
    quota::{Exceeded, QuotaPermit},
    reply::ReplyMessage,
    server::Server,
    session::{Session, Shared, State},
    subscribe::{NotificationFilter, SubscriptionHandle, WatchList},
};
use antiphon_seal::Digest;
use antiphon_wire::{
    AskSupport, ClientCapabilities, ErrorObject, ProtocolVersion, Request, escaped, lock::Lock, write_result,
};
use futures_util::task::AtomicWaker;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::{Arc, OnceLock};

/// The members of `initialize` that are used here. A client that omits its name is served too.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize<'a> {
    protocol_version: String,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default)]
    client_info: Option<&'a RawValue>,
}

impl Server {
    /// Returns whether clients of earlier revisions are served.
    pub(crate) fn has_sessions(&self) -> bool {
        !self.0.modern_only
    }

    /// Opens a session, and returns it with the reply to `initialize`.
    ///
    /// # Errors
    /// The reply that refuses the session.
    pub(crate) fn initialize(
        &self,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<(Session, ReplyMessage), ReplyMessage> {
        self.open_session(request, caller).map_err(|refused| {
            let reply = ReplyMessage::session_error(&request.id, &refused.error);
            refused.full.into_iter().fold(reply, ReplyMessage::because_sessions_are_full)
        })
    }

    fn open_session(
        &self,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<(Session, ReplyMessage), SessionRefused> {
        let text = request.params.ok_or_else(|| ErrorObject::invalid_params("params is missing"))?;
        let initialize: Initialize<'_> = read_object(text, "params")?;
        let capabilities = match initialize.capabilities {
            Some(capabilities) => read_object(capabilities, "params.capabilities")?,
            None => ClientCapabilities::default(),
        };
        // > If the server supports the requested protocol version, it **MUST** respond with the same version. Otherwise,
        // > the server **MUST** respond with another protocol version it supports. This **SHOULD** be the *latest* version
        // > supported by the server.
        let version =
            ProtocolVersion::legacy(&initialize.protocol_version).unwrap_or(ProtocolVersion::V2025_11_25);
        let client = Client::of(&initialize);
        let opened = self.admit_session(caller, &version, client.info)?;
        let filter = self.notification_filter(caller, version.as_str());
        let session = self.session(version, &capabilities, client, Some(opened), filter);
        let offers = self.0.offers.load();
        let result = offers.initialized(session.version(), &self.0.info);
        let body = write_result(&request.id, &result).map_err(|fault| {
            tracing::error!(fault = %escaped(&fault), "the result of initialize cannot be written as JSON");
            ErrorObject::internal()
        })?;
        Ok((session, ReplyMessage::result(body)))
    }

    /// Admits one more session, and identifies its owner.
    fn admit_session(
        &self,
        caller: &Caller<'_>,
        version: &ProtocolVersion,
        client_info: Option<&RawValue>,
    ) -> Result<SessionGrants, SessionRefused> {
        let inner = &self.0;
        if inner.runtime.subscriptions.is_draining() {
            return Err(Refusal::Busy.into());
        }
        let principal = inner.runtime.identity.of(caller).map_err(|cause| {
            tracing::error!(cause = %escaped(&cause), "no identity: a session was refused");
            Refusal::Internal
        })?;
        let account = inner.runtime.accounts.of(caller, principal.as_ref());
        let info = CallerInfo::new(principal.clone(), caller, version.as_str(), client_info);
        let principal = principal.map(|known| inner.sessions.digest(&known));
        let permit = inner.sessions.session_permit(account, &inner.runtime.limits).map_err(|full| {
            let (limit, open, theirs) = (full.limit, full.all, full.theirs);
            tracing::warn!(?limit, open, theirs, "as many sessions are open as are allowed");
            SessionRefused { error: Refusal::Busy.to_error(), full: Some(full.limit) }
        })?;
        // > The server **MUST NOT** send notification types [...]: list changes are sent if the server declared them.
        let profile = &inner.offers.load().profile;
        let watches = profile.list_changed || profile.resource_updates;
        let caller = watches.then(|| Arc::new(info));
        let watched = WatchList { lists: [profile.list_changed; 3], caller, ..WatchList::default() };
        let subscription = inner.runtime.subscriptions.join(account, watched, &inner.runtime.limits)?;
        if let Some(feed) = inner.runtime.feed.as_ref().filter(|_| watches) {
            feed.start();
        }
        Ok(SessionGrants { principal, permit, subscription })
    }

    /// Returns a placeholder for a missing session: it can neither ask nor notify.
    pub(crate) fn without_session(&self, version: ProtocolVersion) -> Session {
        let (client, filter) = (Client::default(), NotificationFilter::default());
        self.session(version, &ClientCapabilities::default(), client, None, filter)
    }

    fn session(
        &self,
        version: ProtocolVersion,
        capabilities: &ClientCapabilities,
        client: Client<'_>,
        opened: Option<SessionGrants>,
        filter: NotificationFilter,
    ) -> Session {
        let asks = asks_of(&version, capabilities);
        let (principal, permit, subscription) = match opened {
            Some(SessionGrants { principal, permit, subscription }) => {
                (principal, Some(permit), Some(subscription))
            }
            None => (None, None, None),
        };
        // Without a session, nobody would be asked.
        let has_tasks = version.has_tasks() && self.0.runtime.tasks.is_some() && subscription.is_some();
        Session(Arc::new(Shared {
            sessions: Arc::clone(&self.0.sessions),
            version,
            asks,
            has_tasks,
            client_info: client.info.map(ToOwned::to_owned),
            extensions: client.extensions.map(|text| Arc::from(text.to_owned())),
            key: OnceLock::new(),
            principal,
            subscription,
            state: Lock::new(State { permit, ..State::default() }),
            filter,
            notifier: AtomicWaker::new(),
        }))
    }
}

/// The texts of the handshake that a session keeps.
#[derive(Clone, Copy, Default)]
struct Client<'a> {
    info: Option<&'a RawValue>,
    extensions: Option<&'a RawValue>,
}

impl<'a> Client<'a> {
    /// Keeps at most [`CLIENT_INFO`] bytes in all: a text that is longer is left out.
    fn of(initialize: &Initialize<'a>) -> Self {
        #[derive(Deserialize)]
        struct Extensions<'a> {
            #[serde(borrow, default)]
            extensions: Option<&'a RawValue>,
        }
        let info = initialize.client_info.filter(|info| info.get().len() <= CLIENT_INFO);
        let left = CLIENT_INFO - info.map_or(0, |info| info.get().len());
        let capabilities = initialize.capabilities.map(RawValue::get).unwrap_or_default();
        let extensions = serde_json::from_str::<Extensions<'_>>(capabilities).ok();
        let extensions = extensions.and_then(|declared| declared.extensions);
        Self { info, extensions: extensions.filter(|text| text.get().len() <= left) }
    }
}

/// The reason for which no session was opened.
struct SessionRefused {
    error: ErrorObject,
    /// The limit that the session would exceed, if there are too many.
    full: Option<Exceeded>,
}

impl From<ErrorObject> for SessionRefused {
    fn from(error: ErrorObject) -> Self {
        Self { error, full: None }
    }
}

impl From<Refusal> for SessionRefused {
    fn from(refusal: Refusal) -> Self {
        refusal.to_error().into()
    }
}

/// The server's resources that a session holds.
struct SessionGrants {
    principal: Option<Digest>,
    permit: QuotaPermit,
    subscription: SubscriptionHandle,
}

/// Returns what a client of this version can be asked. Capabilities that its version does not have are ignored.
fn asks_of(version: &ProtocolVersion, capabilities: &ClientCapabilities) -> AskSupport {
    let mut asks = capabilities.asks();
    asks.form &= version.has_elicitation();
    asks.url &= version.has_url_elicitation();
    asks.sampling_tools &= version.has_sampling_tools();
    // Before 2025-11-25 the context belongs to sampling, and clients may omit it.
    asks.sampling_context |= asks.sampling && !version.has_context_capability();
    asks
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_each_version_can_be_asked() {
        let plain = AskSupport::SAMPLING.and(AskSupport::ROOTS);
        let (mut context, mut newest) = (plain, plain.and(AskSupport::ELICITATION));
        (context.sampling_context, newest.sampling_tools) = (true, true);
        let declared =
            json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} });
        let declared: ClientCapabilities = serde_json::from_value(declared).unwrap();
        for (version, asks) in [
            (ProtocolVersion::V2025_11_25, newest),
            // In these versions the context belongs to sampling.
            (ProtocolVersion::V2025_06_18, context.and(AskSupport::FORM)),
            (ProtocolVersion::V2025_03_26, context),
            (ProtocolVersion::V2024_11_05, context),
        ] {
            assert_eq!(asks_of(&version, &declared), asks, "{version}");
            assert_eq!(asks_of(&version, &ClientCapabilities::default()), AskSupport::NONE, "{version}");
        }
    }
}
