//! The bench itself: what is under test, who is asked, and what is done to it.

use super::{Done, Effects, Fault, Person, Report, client, run};
use crate::{client::Call, server::ServerBuilder};
use antiphon_seal::Principal;
use serde::Serialize;
use serde_json::Value;
use std::{fmt, sync::Arc};

pub(super) type Factory = Arc<dyn Fn(&Effects) -> ServerBuilder + Send + Sync>;

/// A server under test, with as many replicas as a run needs, and the person who is asked.
#[derive(Clone)]
pub struct Bench {
    pub(super) factory: Factory,
    pub(super) upgrade: Option<Upgrade>,
    pub(super) person: Person,
    pub(super) principal: Option<Principal>,
    pub(super) may_fail: bool,
    pub(super) disregard: Arc<dyn Fn(&mut Value) + Send + Sync>,
    pub(super) chosen: Arc<dyn Fn(&Fault) -> bool + Send + Sync>,
}

/// The newer build.
#[derive(Clone)]
pub(super) struct Upgrade {
    pub(super) factory: Factory,
    pub(super) is_refused: bool,
}

impl Bench {
    /// A bench for the server that this makes: one replica each time it is called. Every run begins with new
    /// [`Effects`], which all its replicas share. The bench sets the key ring, the clock and the replay check of each.
    pub fn new(factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static) -> Self {
        Self {
            factory: Arc::new(factory),
            upgrade: None,
            person: Person::new(),
            principal: None,
            may_fail: false,
            disregard: Arc::new(|_| {}),
            chosen: Arc::new(|_| true),
        }
    }

    /// Who is asked.
    #[must_use]
    pub fn person(mut self, person: Person) -> Self {
        self.person = person;
        self
    }

    /// Who calls, as a layer in front of the server would have found out. Default: nobody in particular.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
        self
    }

    /// A newer build, that takes over from each leg in turn: calls go on there, and end as they do on the newer build
    /// alone.
    #[must_use]
    pub fn upgrade(mut self, factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static) -> Self {
        self.upgrade = Some(Upgrade { factory: Arc::new(factory), is_refused: false });
        self
    }

    /// A newer build, that refuses what an older one began.
    #[must_use]
    pub fn upgrade_refused(
        mut self,
        factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static,
    ) -> Self {
        self.upgrade = Some(Upgrade { factory: Arc::new(factory), is_refused: true });
        self
    }

    /// The call is to end with a JSON-RPC error, as a prompt does whose person says no; without this,
    /// [`torture`](Self::torture) takes that for a fault of its own.
    #[must_use]
    pub fn may_fail(mut self) -> Self {
        self.may_fail = true;
        self
    }

    /// Changes results before they are compared: takes out what may differ from run to run, such as a time or an id.
    #[must_use]
    pub fn disregard(mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.disregard = Arc::new(change);
        self
    }

    /// Only these faults. Default: all.
    #[must_use]
    pub fn only(mut self, chosen: impl Fn(&Fault) -> bool + Send + Sync + 'static) -> Self {
        self.chosen = Arc::new(chosen);
        self
    }

    /// Calls a tool; nothing goes wrong. The arguments are an object; `()` means none.
    ///
    /// # Panics
    /// If the arguments are something else, or the server cannot be built.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Done {
        self.run(&tool_call(tool, arguments), None).await
    }

    /// Calls a tool under every fault at every boundary, each in a run of its own, and compares it with a run in which
    /// nothing goes wrong.
    ///
    /// # Panics
    /// As [`call`](Self::call).
    pub async fn torture(&self, tool: &str, arguments: impl Serialize) -> Report {
        self.torture_call(&tool_call(tool, arguments)).await
    }

    /// Makes any call: of a tool, a prompt or a resource, with a fault or without one.
    ///
    /// # Panics
    /// If the server cannot be built.
    pub async fn run(&self, call: &Call, fault: Option<&Fault>) -> Done {
        run::run(self, call, fault, false).await
    }

    /// As [`torture`](Self::torture), for any call.
    ///
    /// # Panics
    /// If the server cannot be built.
    pub async fn torture_call(&self, call: &Call) -> Report {
        Report::make(self, call).await
    }

    /// Makes a call through a real [`Client`](crate::client::Client) over the [memory
    /// pair](crate::transport::memory::duplex). A client checks answers before it sends them, so a person who is wrong
    /// first ends the call there; a question left open ends it too. Legs and polls are not seen.
    ///
    /// # Panics
    /// If the server cannot be built, or outside of a tokio runtime.
    pub async fn run_through_client(&self, call: &Call) -> Done {
        client::run(self, call).await
    }
}

fn tool_call(tool: &str, arguments: impl Serialize) -> Call {
    Call::tool(tool, arguments).unwrap_or_else(|fault| panic!("{fault}"))
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("person", &self.person).finish_non_exhaustive()
    }
}
