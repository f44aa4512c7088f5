//! The beginning of a leg: of the first one of a call, of a later one, and of one that runs to be observed only.

use super::{
    Leg, Observations, Purpose, Setup, Status,
    asks::{Asks, Incoming, RESERVED_SPACE},
    ending::Ending,
    memory::HandlerMemory,
    poll::Polls,
    replay::Replay,
    steps::Steps,
};
use crate::record::Record;
use antiphon_seal::Call;
use antiphon_wire::InputResponses;

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
