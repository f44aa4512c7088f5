//! The settings of a leg.

#[cfg(doc)]
use super::Leg;
use crate::{limits::Limits, record::Migration};
use antiphon_seal::Digest;
use std::sync::Arc;

/// The way in which an answer reaches the handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// The answer comes with the next leg: a question ends this leg.
    #[default]
    NextLeg,
    /// The answer comes during this leg: the handler waits for it.
    ThisLeg,
}

/// The purpose of a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The leg runs for its result.
    #[default]
    Serve,
    /// The leg runs for its result and for observations: it also records what the handler drops.
    Observe,
    /// The leg runs for the observations only: no step runs, and no checkpoint ends it.
    DryRun,
}

impl Purpose {
    /// Returns `true` if the leg records what the handler drops.
    pub(super) fn watches(self) -> bool {
        self == Self::Observe
    }
}

/// The settings of a leg.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The limits of the call.
    pub limits: Limits,
    /// The way in which answers reach the handler.
    pub delivery: Delivery,
    /// The purpose of the leg.
    pub purpose: Purpose,
    /// The changes of this version of the tool to recorded steps.
    pub migration: Migration,
    /// True if recorded steps that the handler does not reach do not end the call.
    pub lenient: bool,
    /// True if the leg ends with state only before its first new step.
    pub anchor: bool,
    /// True in a task: questions stay open from leg to leg, so a leg without an answer is no refusal to answer.
    pub in_task: bool,
    /// The questions that an earlier run of this leg has shown, by their paths. In a task, an answer to one of them may have come:
    /// each stays open until this leg asks it, or a later leg comes to rest without it.
    pub shown: Vec<(Arc<str>, Digest)>,
    /// True if the call was cancelled and the handler does not know yet: its first new step does not run and fails with the
    /// code [`CANCELLED`](crate::CANCELLED).
    pub refuse_step: bool,
    /// The time at which the leg begins, in Unix seconds.
    pub now: u64,
    /// True if the leg writes its deliveries to a store: [`Leg::write_ahead`].
    pub writes_ahead: bool,
    /// The version of the tool.
    pub version: u32,
}
