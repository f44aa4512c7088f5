//! Execution at most once: a leg is claimed in a store before its handler runs, and its reply is committed before it leaves.
//!
//! ```text
//!  admit ─▶ claim ─┬─ fresh ──▶ run ─▶ encode ─▶ seal ─▶ commit ─▶ reply
//!                  │             │ renew, until the fence is lost: no reply, no commit
//!                  │             └ no step began: release, the same request may run again
//!                  ├─ done ─────▶ open ─▶ the client's capabilities ─▶ the same reply
//!                  ├─ running ──▶ wait for that run, for a bounded time ─▶ `in_flight`
//!                  ├─ conflict ─▶ `used`
//!                  └─ unknown ──▶ taken over, or `outcome_unknown`
//! ```
//!
//! | level | a leg | a step |
//! |---|---|---|
//! | none | runs for each delivery of its request | at least once |
//! | [`single_use`](crate::ServerBuilder::single_use) | runs once for each state | at most once |
//! | [`write_ahead`](crate::ServerBuilder::write_ahead) | continues after a crash | its start and its end are stored, and the order in which the handler received everything |
//! | [`in_transaction`](crate::Ctx::in_transaction) | as `write_ahead` | its end and its writes are one transaction |
//!
//! The first request of a call has no state to claim. It ends before its first new step, with state only, if the client
//! accepts such a result: the `anchor`. For the other clients, a caller with a principal claims a
//! digest of the request instead, and the call is in the store, so that another run of it has the same keys.

mod claim;
mod claimed_leg;
mod outcome;
mod records;
mod step_record;

pub(crate) use claim::{ClaimResult, anchors, claim};
pub(crate) use claimed_leg::{ClaimedLeg, fingerprint};
pub(crate) use outcome::{StoredReply, StoredTask};
pub(crate) use step_record::StartStored;
