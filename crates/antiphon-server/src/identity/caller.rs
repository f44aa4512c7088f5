//! The caller of a request, as known to the transport.

use crate::{
    identity::{bearer::Bearer, head::RequestHead, peer_address::PeerAddress},
    outbox::Outbox,
    task_registry::leg::TaskLeg,
};
use antiphon_seal::Principal;
use http::{Extensions, HeaderMap};
use std::{
    error::Error as StdError,
    fmt,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

/// The sender of one request, as known to the transport.
///
/// `Caller::default()` is the owner of the process, as on stdio: no scope and no share of anonymous callers applies to
/// it. A transport of one's own that receives requests from a network, such as a bridge, uses
/// [`remote`](Self::remote), or [`http`](Self::http) if the request has HTTP headers.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// The HTTP headers; `None` on other transports.
    pub headers: Option<&'a HeaderMap>,
    /// The values that layers in front of the server added, such as a [`Principal`]; `None` on other transports.
    pub extensions: Option<&'a Extensions>,
    /// The address of the peer, unless an extension has it.
    pub(crate) address: Option<PeerAddress>,
    /// Headers and extensions, where handlers can share them.
    pub(crate) head: Option<&'a Arc<RequestHead>>,
    /// The extensions, where layers of the server have added some.
    pub(crate) added: Option<&'a Arc<Extensions>>,
    /// The outbox for messages before the reply; without it, none are sent.
    pub(crate) outbox: Option<&'a Outbox>,
    /// The leg of a task; `None` for a request of a client.
    pub(crate) task: Option<&'a Arc<TaskLeg>>,
    /// See [`is_remote`](Caller::is_remote).
    pub(crate) is_remote: bool,
}

impl<'a> Caller<'a> {
    /// Returns the sender of an HTTP request, who is [remote](Self::remote).
    pub fn http(headers: &'a HeaderMap, extensions: &'a Extensions) -> Self {
        Self { headers: Some(headers), ..Self::remote(extensions) }
    }

    /// Returns a sender on the other side of a network, for a transport of one's own that is not HTTP. The extensions hold what
    /// the transport knows of the sender: a [`Bearer`], a [`Principal`], a [`PeerAddress`]. Without them the sender is
    /// anonymous, and holds no scope.
    pub fn remote(extensions: &'a Extensions) -> Self {
        Self { extensions: Some(extensions), is_remote: true, ..Self::default() }
    }

    /// Returns the sender of an HTTP request, whose head its handlers share.
    #[cfg(feature = "http")]
    pub(crate) fn of_head(head: &'a Arc<RequestHead>, address: Option<PeerAddress>) -> Self {
        Self { head: Some(head), address, ..Self::http(&head.headers, &head.extensions) }
    }

    /// Returns the same sender, with these extensions.
    pub(crate) fn with_extensions(self, added: &'a Arc<Extensions>) -> Self {
        Self { extensions: Some(added), added: Some(added), ..self }
    }

    /// Returns headers and extensions for the handlers; `None` on other transports.
    pub(crate) fn shared_head(&self) -> Option<Arc<RequestHead>> {
        self.head.cloned().or_else(|| {
            let extensions = self.extensions.cloned().unwrap_or_default();
            Some(Arc::new(RequestHead { headers: self.headers?.clone(), extensions }))
        })
    }

    /// Returns the address of the peer: the one that a layer inserted as an extension, or else that of the connection. `None`
    /// if neither is known.
    pub fn peer_address(&self) -> Option<PeerAddress> {
        self.extensions.and_then(|found| found.get().copied()).or(self.address)
    }

    /// Returns true if the sender is on the other side of a network, and shows by a token who it is: rights need a
    /// [`bearer`](Self::bearer) then. Otherwise (stdio, memory) the sender is the owner of the process, whom nobody authenticates, or
    /// the leg of a task, whose caller was checked when the task was created.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Returns the verified token of the sender, if there is one.
    pub fn bearer(&self) -> Option<&'a Bearer> {
        self.extensions?.get()
    }

    /// Returns the outbox for the messages before the reply. Without one, none are sent.
    pub fn outbox(&self) -> Option<&'a Outbox> {
        self.outbox
    }

    /// Returns the caller of a leg of a task: the one who created the task.
    pub(crate) fn of_task(task: &'a Arc<TaskLeg>) -> Self {
        Self { task: Some(task), ..Self::default() }
    }

    /// Returns the same caller, with an outbox for the messages before the reply.
    pub fn with_outbox(self, outbox: &'a Outbox) -> Self {
        Self { outbox: Some(outbox), ..self }
    }
}

impl fmt::Debug for Caller<'_> {
    /// Omits headers and extensions: they hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("is_remote", &self.is_remote).finish_non_exhaustive()
    }
}

/// A function that identifies the caller.
pub(crate) type PrincipalBinder =
    Arc<dyn Fn(&Caller<'_>) -> Result<Option<Principal>, Box<dyn StdError + Send + Sync>> + Send + Sync>;

/// The rules by which a server identifies its callers.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) binder: PrincipalBinder,
    pub(crate) client_is_enough: bool,
}

impl Default for Identity {
    /// Returns the rule that reads the [`Principal`] that a layer in front left in the request's extensions.
    fn default() -> Self {
        let binder: PrincipalBinder =
            Arc::new(|caller| Ok(caller.extensions.and_then(|found| found.get::<Principal>()).cloned()));
        Self { binder, client_is_enough: false }
    }
}

impl Identity {
    /// Returns the caller's principal. The text of an `Err` is for the log: such a caller is refused.
    pub(crate) fn of(&self, caller: &Caller<'_>) -> Result<Option<Principal>, String> {
        // The author's function may panic, and some callers of this method do not catch panics.
        let bound = panic::catch_unwind(AssertUnwindSafe(|| (self.binder)(caller)));
        let bound = bound.map_err(|_panic| "bind_principal panicked".to_owned())?;
        let principal = bound.map_err(|error| format!("bind_principal failed: {error}"))?;
        match &principal {
            Some(found) if !found.has_subject() && !self.client_is_enough => {
                Err("the principal has no subject, so all \
                 users of one client software would be one; allow_client_principal() accepts that"
                    .to_owned())
            }
            _ => Ok(principal),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("client_is_enough", &self.client_is_enough).finish_non_exhaustive()
    }
}
