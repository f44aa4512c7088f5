//! The bench: the server under test, the scripted user, and the faults.

use super::{
    CallRun, Effects, Fault, Report, ScriptedUser, client, run,
    setup::{Setup, Upgrade},
};
use crate::{client::Call, server::ServerBuilder};
use antiphon_seal::Principal;
use serde::Serialize;
use serde_json::Value;
use std::{fmt, future::Future, sync::Arc};

/// A server under test, with as many replicas as a run needs, and a [`ScriptedUser`].
#[derive(Clone)]
pub struct Bench {
    setup: Setup,
}

impl Bench {
    /// Creates a bench for the server that `factory` builds: one replica per call of `factory`. Every run begins with
    /// new [`Effects`], which all its replicas share. The bench sets the key ring, the clock and the replay check of
    /// each replica. A server without keys of its own needs no `single_instance` for a store in memory.
    pub fn new(factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static) -> Self {
        Self { setup: Setup::new(Arc::new(factory)) }
    }

    /// Sets the user who answers. Default: [`ScriptedUser::new`], who has no answers.
    #[must_use]
    pub fn user(mut self, user: ScriptedUser) -> Self {
        self.setup.user = user;
        self
    }

    /// Sets the principal of each request, as an authentication layer in front of the server would. Default: none.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.setup.principal = Some(principal);
        self
    }

    /// Gives the caller an access token with these scopes, for tools with
    /// [`scopes`](crate::server::Tool::scopes). It is the token of the [`principal`](Self::principal), or of a user of the
    /// bench. Default: no token.
    #[must_use]
    pub fn bearer<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
        self.setup.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets an async function that makes one value for each run, before its first replica: a new database, for example. The
    /// factory gets the value from [`Effects::provided`].
    #[must_use]
    pub fn provide<T, Made>(mut self, make: impl Fn(Effects) -> Made + Send + Sync + 'static) -> Self
    where
        T: Send + Sync + 'static,
        Made: Future<Output = T> + Send + 'static,
    {
        self.setup.providers.push(Arc::new(move |effects| {
            let made = make(effects.clone());
            Box::pin(async move { effects.put(made.await) })
        }));
        self
    }

    /// Adds [`Fault::Upgrade`] for each leg: a newer build continues the call. The call must end as on the newer build
    /// alone.
    #[must_use]
    pub fn upgrade(mut self, factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static) -> Self {
        self.setup.upgrade = Some(Upgrade { factory: Arc::new(factory), is_refused: false });
        self
    }

    /// Adds [`Fault::Upgrade`] for each leg: a newer build must reject calls that the older build began.
    #[must_use]
    pub fn upgrade_refused(
        mut self,
        factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static,
    ) -> Self {
        self.setup.upgrade = Some(Upgrade { factory: Arc::new(factory), is_refused: true });
        self
    }

    /// Allows the call without a fault to end with a JSON-RPC error, for example a prompt whose user declines. By
    /// default [`run_all_faults`](Self::run_all_faults) reports that error as a finding.
    #[must_use]
    pub fn may_fail(mut self) -> Self {
        self.setup.may_fail = true;
        self
    }

    /// Sets a function that changes results before they are compared, to remove members that differ between runs, such as
    /// a time or an id. Default: no change.
    #[must_use]
    pub fn disregard(mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.setup.disregard = Arc::new(change);
        self
    }

    /// Limits [`run_all_faults`](Self::run_all_faults) to the faults for which `chosen` returns true. Default: all.
    #[must_use]
    pub fn only(mut self, chosen: impl Fn(&Fault) -> bool + Send + Sync + 'static) -> Self {
        self.setup.chosen = Arc::new(chosen);
        self
    }

    /// Calls a tool without faults. The arguments are an object; `()` means none.
    ///
    /// # Panics
    /// If the arguments are neither an object nor `()`, or the server cannot be built.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> CallRun {
        self.run(&tool_call(tool, arguments), None).await
    }

    /// Calls a tool once without faults, then once per [`Fault`] and boundary, and compares the results. Each call is a
    /// separate run.
    ///
    /// # Panics
    /// As [`call`](Self::call).
    pub async fn run_all_faults(&self, tool: &str, arguments: impl Serialize) -> Report {
        self.run_all_faults_on(&tool_call(tool, arguments)).await
    }

    /// Calls a tool, a prompt or a resource, with one fault or none.
    ///
    /// # Panics
    /// If the server cannot be built.
    pub async fn run(&self, call: &Call, fault: Option<&Fault>) -> CallRun {
        run::run(&self.setup, call, fault, false).await
    }

    /// Runs [`run_all_faults`](Self::run_all_faults) for a call of a tool, a prompt or a resource.
    ///
    /// # Panics
    /// If the server cannot be built.
    pub async fn run_all_faults_on(&self, call: &Call) -> Report {
        Report::make(&self.setup, call).await
    }

    /// Makes a call through a real [`Client`](crate::client::Client) over the [memory
    /// pair](crate::client::transport::memory::duplex). The client validates answers before it sends them, so an invalid or
    /// missing answer ends the call. The result has one [`Leg`](super::Leg) with all asks and no polls.
    ///
    /// # Panics
    /// If the server cannot be built, or outside of a tokio runtime.
    pub async fn run_through_client(&self, call: &Call) -> CallRun {
        client::run(&self.setup, call).await
    }
}

fn tool_call(tool: &str, arguments: impl Serialize) -> Call {
    Call::tool(tool, arguments).unwrap_or_else(|fault| panic!("{fault}"))
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("user", &self.setup.user).finish_non_exhaustive()
    }
}
