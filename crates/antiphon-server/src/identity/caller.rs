//! Who is calling, as far as a transport can tell.

use crate::{Bearer, Outbox};
use antiphon_seal::Principal;
use http::{Extensions, HeaderMap};
use std::{
    error::Error as StdError,
    fmt,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

/// What a transport knows about the sender of one request.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// The HTTP headers; `None` on other transports.
    pub headers: Option<&'a HeaderMap>,
    /// What layers in front of the server have found out, such as a [`Principal`]; `None` on other transports.
    pub extensions: Option<&'a Extensions>,
    /// Where what is sent before the reply goes; without it, nothing is.
    pub(crate) outbox: Option<&'a Outbox>,
}

impl<'a> Caller<'a> {
    /// The sender of an HTTP request.
    pub fn http(headers: &'a HeaderMap, extensions: &'a Extensions) -> Self {
        Self { headers: Some(headers), extensions: Some(extensions), outbox: None }
    }

    /// The verified token of the sender, if one was sent and checked.
    pub fn bearer(&self) -> Option<&'a Bearer> {
        self.extensions?.get()
    }

    /// Returns the outbox for the messages before the reply. Without one, none are sent.
    pub fn outbox(&self) -> Option<&'a Outbox> {
        self.outbox
    }

    /// Returns the same caller, with an outbox for the messages before the reply.
    pub fn with_outbox(self, outbox: &'a Outbox) -> Self {
        Self { outbox: Some(outbox), ..self }
    }
}

impl fmt::Debug for Caller<'_> {
    /// Neither headers nor extensions: they hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("http", &self.headers.is_some()).finish_non_exhaustive()
    }
}

/// What tells a server who is calling.
pub(crate) type PrincipalBinder =
    Arc<dyn Fn(&Caller<'_>) -> Result<Option<Principal>, Box<dyn StdError + Send + Sync>> + Send + Sync>;

/// How a server learns who is calling, and what it takes for an identity.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) binder: PrincipalBinder,
    pub(crate) client_is_enough: bool,
}

impl Default for Identity {
    /// The [`Principal`] that a layer in front left in the request's extensions.
    fn default() -> Self {
        let binder: PrincipalBinder =
            Arc::new(|caller| Ok(caller.extensions.and_then(|found| found.get::<Principal>()).cloned()));
        Self { binder, client_is_enough: false }
    }
}

impl Identity {
    /// Who is calling. An `Err` is for the log: such a caller is refused.
    pub(crate) fn of(&self, caller: &Caller<'_>) -> Result<Option<Principal>, String> {
        // It is the author's, and may panic; not everyone who asks is within what catches that.
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
