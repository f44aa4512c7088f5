//! The settings of a leg, and its beginning.

use crate::{
    leg::{
        Leg, Observations, Status,
        asks::{Asks, Incoming, RESERVED_SPACE},
        memory::HandlerMemory,
        poll::Polls,
        replay::Replay,
        steps::{Ending, Steps},
    },
    limits::Limits,
    record::{Migration, Record},
};
use antiphon_seal::{Call, Digest};
use antiphon_wire::InputResponses;
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

impl Leg {
    /// Begins the first leg of a call.
    // Not inlined: a function writes its result where the caller keeps it, and inlined code copies it there.
    #[inline(never)]
    pub fn begin(mut setup: Setup) -> Self {
        let asks = Asks::begin(std::mem::take(&mut setup.shown));
        let replay = match setup.writes_ahead {
            true => Replay::of(Vec::new(), None, true),
            false => Replay::default(),
        };
        Self {
            began: setup.now,
            call: None,
            status: Status::Running,
            polls: Polls::default(),
            replay,
            asks,
            steps: Steps::of(setup.refuse_step),
            ending: Ending::of(setup.anchor, 0),
            memory: HandlerMemory::default(),
            observations: Observations::watching(setup.purpose.watches()),
            setup,
        }
    }

    /// Begins a later leg, with the answers to awaited questions. [`Record::receive`] has received the answers to
    /// questions asked by hand.
    ///
    /// The leg is made in its box: it is large.
    pub fn resume(
        call: Call,
        record: Record,
        responses: Option<&InputResponses>,
        mut setup: Setup,
    ) -> Box<Self> {
        let shown = std::mem::take(&mut setup.shown);
        let room = setup
            .limits
            .state
            .saturating_sub(record.size())
            .saturating_sub(record.stored.as_ref().map_or(0, |stored| stored.size()))
            .saturating_sub(setup.limits.step_result)
            .saturating_sub(RESERVED_SPACE);
        let place = Box::new_uninit();
        let mut leg = Box::write(place, Self::begin(setup));
        let Setup { now, in_task, writes_ahead, anchor, refuse_step, .. } = leg.setup;
        let has_refused = record.stored.as_ref().is_some_and(|stored| stored.has_refused_step());
        leg.call(|| Ok(call));
        leg.steps = Steps::of(refuse_step && !has_refused);
        leg.replay = Replay::of(record.entries, record.stored, writes_ahead);
        leg.memory = HandlerMemory::of(record.notes, record.state);
        leg.ending = Ending::of(anchor, record.state_only_count);
        let incoming = Incoming { responses, room, now, in_task };
        leg.asks.resume(record.round, record.received, record.asked, incoming);
        leg.asks.reopen(shown);
        leg
    }

    /// Begins a leg only to see if the handler reaches the same entries again: as the next leg, without answers.
    pub fn dry_run(call: Call, mut record: Record, setup: Setup) -> Box<Self> {
        for asked in &mut record.asked {
            // A question may change in a dry run, however often it was asked.
            asked.times = 0;
        }
        // At second 0 no deadline is over.
        Self::resume(call, record, None, Setup { purpose: Purpose::DryRun, now: 0, ..setup })
    }

    /// Returns `true` if the leg is a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.setup.purpose == Purpose::DryRun
    }
}
