//! What a handler is told of the world, the same on every leg.

use crate::server::Ctx;
use antiphon_wire::AskSupport;
use std::time::SystemTime;

impl Ctx {
    /// What the client said it can be asked, when the handler first looked. A later request of the call that says
    /// something else is not sent another way: where it lacks what is asked then, it is refused.
    ///
    /// The caller chooses what it declares: decide nothing by it that must not be left out.
    pub fn can_ask(&self) -> AskSupport {
        let now = self.declared();
        self.flow().with(|leg| {
            leg.recorded_ask_support().unwrap_or_else(|| {
                leg.record_ask_support(now);
                now
            })
        })
    }

    /// Whether the client can show forms. See [`can_ask`](Self::can_ask).
    pub fn can_elicit(&self) -> bool {
        self.can_ask().form
    }

    /// Whether the client can open URLs. See [`can_ask`](Self::can_ask).
    pub fn can_elicit_url(&self) -> bool {
        self.can_ask().url
    }

    /// Whether the client has a model. See [`can_ask`](Self::can_ask).
    pub fn can_sample(&self) -> bool {
        self.can_ask().sampling
    }

    /// Whether the client can list its roots. See [`can_ask`](Self::can_ask).
    pub fn can_list_roots(&self) -> bool {
        self.can_ask().roots
    }

    /// When the call began, in whole seconds: the same on every leg.
    pub fn now(&self) -> SystemTime {
        self.flow().born()
    }

    /// A number that looks random, and is the same on every leg of the call, for the same key and scope.
    pub fn random_u64(&self, key: &str) -> u64 {
        self.flow().keyed(|secret| secret.random_u64(self.scope_prefix(), key)).unwrap_or_default()
    }
}
