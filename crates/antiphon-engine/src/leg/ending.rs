//! The end that a leg comes to besides its questions: one that its driver wants, and one before its first new step.

/// The means by which a leg ends before its handler has returned, and what its end waits for.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// True if the leg ends before its first new step.
    anchors: bool,
    /// True if the leg ends as soon as no step runs.
    ends_soon: bool,
    /// The number of legs that ended with state only.
    state_only_count: u8,
    /// The number of operations of the store that run, without those of steps.
    storing: u32,
}

impl Ending {
    pub(super) fn of(anchors: bool, state_only_count: u8) -> Self {
        Self { anchors, state_only_count, ..Self::default() }
    }

    /// Ends the leg as soon as no step runs. No new step begins.
    pub(super) fn end_soon(&mut self) {
        (self.anchors, self.ends_soon) = (true, true);
    }

    pub(super) fn is_soon(&self) -> bool {
        self.ends_soon
    }

    /// Returns `true` if the leg ends before its next new step.
    pub(super) fn anchors(&self) -> bool {
        self.anchors
    }

    pub(super) fn state_only_count(&self) -> u8 {
        self.state_only_count
    }

    /// Counts this leg as one that ends with state only.
    pub(super) fn count_state_only(&mut self) {
        self.state_only_count = self.state_only_count.saturating_add(1);
    }

    /// Notes that an operation of the store has begun, or ended, without which the leg does not end.
    pub(super) fn store_operation(&mut self, begins: bool) {
        self.storing = if begins { self.storing + 1 } else { self.storing.saturating_sub(1) };
    }

    pub(super) fn is_storing(&self) -> bool {
        self.storing > 0
    }
}
