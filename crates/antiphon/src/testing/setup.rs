//! The settings of a bench, as each run reads them.

use super::{Effects, Fault, ScriptedUser};
use crate::server::{Bearer, ServerBuilder};
use antiphon_seal::Principal;
use futures_util::future::BoxFuture;
use http::Extensions;
use serde_json::Value;
use std::sync::Arc;

/// A function that builds one replica.
pub(super) type Factory = Arc<dyn Fn(&Effects) -> ServerBuilder + Send + Sync>;

/// A function that puts a value into the effects of a new run.
pub(super) type Provider = Arc<dyn Fn(Effects) -> BoxFuture<'static, ()> + Send + Sync>;

/// The server under test, the user who answers, and the choices of the test's author.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) factory: Factory,
    pub(super) upgrade: Option<Upgrade>,
    pub(super) user: ScriptedUser,
    pub(super) principal: Option<Principal>,
    /// The scopes of the caller's token; `None` for a caller without a token.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) providers: Vec<Provider>,
    pub(super) may_fail: bool,
    pub(super) disregard: Arc<dyn Fn(&mut Value) + Send + Sync>,
    pub(super) chosen: Arc<dyn Fn(&Fault) -> bool + Send + Sync>,
}

/// A newer build of the server.
#[derive(Clone)]
pub(super) struct Upgrade {
    pub(super) factory: Factory,
    pub(super) is_refused: bool,
}

impl Setup {
    pub(super) fn new(factory: Factory) -> Self {
        Self {
            factory,
            upgrade: None,
            user: ScriptedUser::new(),
            principal: None,
            scopes: None,
            providers: Vec::new(),
            may_fail: false,
            disregard: Arc::new(|_| {}),
            chosen: Arc::new(|_| true),
        }
    }

    /// Returns what an authentication layer in front of the server leaves in a request of the caller.
    pub(super) fn caller(&self) -> Extensions {
        self.sender(self.principal.clone(), "antiphon-testing")
    }

    /// Returns the same for another caller with the same scopes.
    pub(super) fn stranger(&self) -> Extensions {
        self.sender(None, "antiphon-stranger")
    }

    /// `otherwise`: the user whose token it is if there is no principal.
    fn sender(&self, principal: Option<Principal>, otherwise: &str) -> Extensions {
        let mut extensions = Extensions::new();
        let bearer = self.scopes.as_ref().map(|scopes| {
            Bearer::new(principal.clone().unwrap_or_else(|| Principal::user(otherwise))).with_scopes(scopes)
        });
        if let Some(principal) = bearer.as_ref().map(|bearer| bearer.principal().clone()).or(principal) {
            extensions.insert(principal);
        }
        if let Some(bearer) = bearer {
            extensions.insert(bearer);
        }
        extensions
    }
}
