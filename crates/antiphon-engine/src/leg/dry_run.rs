//! Dry runs of a handler: checks that it takes the same path when it runs again.

use super::{Leg, Purpose, Setup};
use crate::record::Record;
use antiphon_seal::Call;

impl Leg {
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

    /// Notes that a question failed. The handler may drop futures beside it because of that.
    pub fn note_refusal(&mut self) {
        self.observations.failed = true;
    }
}
