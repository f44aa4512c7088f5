//! The settings of a bench, as each run reads them.

use super::{Effects, Fault, ScriptedUser};
use crate::server::ServerBuilder;
use antiphon_seal::Principal;
use serde_json::Value;
use std::sync::Arc;

/// A function that builds one replica.
pub(super) type Factory = Arc<dyn Fn(&Effects) -> ServerBuilder + Send + Sync>;

/// The server under test, the user who answers, and the choices of the test's author.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) factory: Factory,
    pub(super) upgrade: Option<Upgrade>,
    pub(super) user: ScriptedUser,
    pub(super) principal: Option<Principal>,
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
            may_fail: false,
            disregard: Arc::new(|_| {}),
            chosen: Arc::new(|_| true),
        }
    }
}
