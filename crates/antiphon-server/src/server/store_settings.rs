//! The settings of a server's store, on its builder.

use crate::{options::settings::Level, runtime::claims::ClaimOptions, server::builder::ServerBuilder};
use antiphon_store::CallStore;
use std::sync::Arc;

impl ServerBuilder {
    /// Sets the store of calls, which [`single_use`](Self::single_use) and [`write_ahead`](Self::write_ahead) need. All
    /// instances of the server share it. It holds sealed data only. An `Arc` of a store is a store too, if other parts of the
    /// program use it. Default: none.
    #[must_use]
    pub fn store(mut self, store: impl CallStore) -> Self {
        self.at_most_once.store = Some(Arc::new(store));
        self
    }

    /// Sets whether each state of a call is used at most once, for all tools, prompts and resources that do not set
    /// it themselves. A leg is claimed in the [`store`](Self::store) before its handler runs, and its reply is stored
    /// before it leaves:
    ///
    /// | a request with the same state | result |
    /// |---|---|
    /// | and the same answers | the same reply; the handler does not run |
    /// | and other answers | the error `used` |
    /// | while the first one runs | waits for its reply ([`ClaimOptions::wait_timeout`]), then the error `in_flight` |
    /// | after the process of the first one died | the error `outcome_unknown` |
    ///
    /// The first request of a call has no state yet: it ends before its first new step, and the client sends the state
    /// back at once. A client that does not accept a result with [state only](Self::accepts_state_only) is protected by its
    /// principal and the id of its request, for [`ClaimOptions::first_request_ttl`]; an anonymous one is refused before the
    /// first line of the handler, as `no_claim`. In a session, a request is claimed by its session and its id.
    /// Default: `false`.
    #[must_use]
    pub fn single_use(mut self, on: bool) -> Self {
        self.at_most_once.level = if on { Level::SingleUse } else { Level::None };
        self
    }

    /// Sets whether the start and the end of each step are stored too. After a crash, the same request continues: steps
    /// that ended do not run again. A step that had begun and not ended is refused as `outcome_unknown`, runs again
    /// ([`Tool::rerun_after_crash`](crate::Tool::rerun_after_crash)), or is resolved by the author
    /// ([`Step::reconcile`](crate::Step::reconcile)). A step [in a transaction](crate::Ctx::in_transaction) of the store is never in
    /// that situation. It includes [`single_use`](Self::single_use). Default: `false`.
    #[must_use]
    pub fn write_ahead(mut self, on: bool) -> Self {
        self.at_most_once.level = if on { Level::WriteAhead } else { Level::None };
        self
    }

    /// Sets whether the record of a call moves to the store once it exceeds [`Limits::state`](crate::Limits::state):
    /// the token then has its digest and its size. A record in the store has at most 8 MiB. Default: `false`; a call
    /// with a larger record ends with an error.
    #[must_use]
    pub fn spill(mut self, on: bool) -> Self {
        self.at_most_once.spills = on;
        self
    }

    /// Sets the times of claims. Default: [`ClaimOptions::default`].
    #[must_use]
    pub fn claim_options(mut self, options: ClaimOptions) -> Self {
        self.at_most_once.options = options;
        self
    }

    /// Sets whether this server has one instance, although its keys could be shared: a store in memory is then enough.
    /// Default: `false`.
    #[must_use]
    pub fn single_instance(mut self, on: bool) -> Self {
        self.at_most_once.single_instance = on;
        self
    }
}
