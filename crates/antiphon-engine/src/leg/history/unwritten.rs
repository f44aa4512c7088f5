//! The deliveries of a leg, as far as they go to its store.

/// The deliveries of a leg, as far as they go to its store.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// The deliveries that are not in the store, as indexes, in their order. Kept if the leg has a store.
    deliveries: Option<Vec<usize>>,
    /// The number of deliveries before these.
    written: u32,
    /// The number of deliveries that texts for the store hold.
    submitted: u32,
}

impl Unwritten {
    pub(super) fn of(is_kept: bool, written: u32) -> Self {
        Self { deliveries: is_kept.then(Vec::new), written, submitted: 0 }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.deliveries.is_some()
    }

    pub(super) fn push(&mut self, at: usize) {
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.push(at);
        }
    }

    /// Returns the number of all deliveries.
    fn all(&self) -> u32 {
        self.written.saturating_add(u32::try_from(self.deliveries().len()).unwrap_or(u32::MAX))
    }

    pub(super) fn note_written(&mut self, deliveries: u32) {
        let new = deliveries.saturating_sub(self.written);
        if let Some(unwritten) = &mut self.deliveries {
            unwritten.drain(..unwritten.len().min(new as usize));
            self.written = self.written.max(deliveries);
        }
    }

    pub(super) fn deliveries(&self) -> &[usize] {
        self.deliveries.as_deref().unwrap_or_default()
    }

    /// Returns the number of deliveries that the store has.
    pub(super) fn written(&self) -> u32 {
        self.written
    }

    /// Returns `true` if there are deliveries, and texts for the store hold them all.
    pub(super) fn is_submitted(&self) -> bool {
        !self.deliveries().is_empty() && self.all() <= self.submitted
    }

    /// Notes that a text for the store holds all deliveries. Returns their number.
    pub(super) fn submit(&mut self) -> u32 {
        self.submitted = self.all();
        self.submitted
    }
}
