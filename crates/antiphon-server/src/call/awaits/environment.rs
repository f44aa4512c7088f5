//! Values from the environment that are the same on every leg: capabilities, time, random numbers.

use crate::call::ctx::Ctx;
use antiphon_wire::AskSupport;
use std::time::SystemTime;

impl Ctx {
    /// Returns the capabilities that the client had declared when the handler first called this. If a later request of
    /// the call declares less, and the handler asks something that it lacks, that request is refused.
    ///
    /// The caller chooses which capabilities it declares: do not skip a mandatory question because of them.
    pub fn can_ask(&self) -> AskSupport {
        let now = self.declared();
        self.leg_runtime().with(|leg| {
            leg.recorded_ask_support().unwrap_or_else(|| {
                leg.record_ask_support(now);
                now
            })
        })
    }

    /// Returns whether the client can show forms. See [`can_ask`](Self::can_ask).
    pub fn can_elicit(&self) -> bool {
        self.can_ask().form
    }

    /// Returns whether the client can open URLs. See [`can_ask`](Self::can_ask).
    pub fn can_elicit_url(&self) -> bool {
        self.can_ask().url
    }

    /// Returns whether the client has a model. See [`can_ask`](Self::can_ask).
    pub fn can_sample(&self) -> bool {
        self.can_ask().sampling
    }

    /// Returns whether the client can list its roots. See [`can_ask`](Self::can_ask).
    pub fn can_list_roots(&self) -> bool {
        self.can_ask().roots
    }

    /// Returns the time at which the call began, in whole seconds: the same on every leg.
    pub fn now(&self) -> SystemTime {
        self.leg_runtime().born()
    }

    /// Returns a pseudo-random number, the same on every leg of the call for the same key and scope.
    pub fn random_u64(&self, key: &str) -> u64 {
        self.leg_runtime().keyed(|secret| secret.random_u64(self.scope_prefix(), key)).unwrap_or_default()
    }
}
