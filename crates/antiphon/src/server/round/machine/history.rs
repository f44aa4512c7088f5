//! What was recorded, how much of it this leg has met, and whose turn it is.

use crate::server::round::journal::{Body, Entry, Kind, StepOutcome};
use antiphon_seal::Digest;
use std::{collections::HashMap, panic::Location};

/// Where in the author's code something was called.
pub(crate) type Place = &'static Location<'static>;

/// So many entries are looked through one by one.
const MANY: usize = 32;

/// The entries of a call in the order in which they were recorded; old ones first, then those of this leg.
#[derive(Debug, Default)]
pub(super) struct History {
    kept: Vec<Kept>,
    /// Where the entries of a path are, once there are [`MANY`]: whoever is held looks again each time it is polled.
    places: HashMap<Box<str>, Vec<usize>>,
    /// How many are from earlier legs.
    old: usize,
    /// No old step before this one is still to be met.
    frontier: usize,
    /// Old answers, steps and checkpoints still to be met.
    unmet: usize,
    /// Entries need not wait for those before them.
    unordered: bool,
    size: usize,
}

#[derive(Debug)]
struct Kept {
    entry: Entry,
    met: Option<Place>,
    /// It need not be met.
    excused: bool,
    gone: bool,
}

impl Kept {
    fn counts(&self) -> bool {
        let abandoned = matches!(self.entry.body, Body::Step { outcome: StepOutcome::Abandoned, .. });
        matches!(self.entry.kind(), Kind::Ask | Kind::Step | Kind::Pause) && !abandoned
    }

    fn is_due(&self) -> bool {
        self.counts() && self.met.is_none() && !self.excused && !self.gone
    }
}

impl History {
    /// What earlier legs have recorded.
    pub(super) fn of(entries: Vec<Entry>) -> Self {
        let mut history = Self { kept: Vec::with_capacity(entries.len() + 8), ..Self::default() };
        for entry in entries {
            history.remember(entry);
        }
        history
    }

    /// One more entry that was there before this leg.
    pub(super) fn remember(&mut self, entry: Entry) {
        self.push(entry, None);
        self.old = self.kept.len();
        self.unmet += usize::from(self.kept.last().is_some_and(Kept::is_due));
    }

    /// An entry of this leg.
    pub(super) fn record(&mut self, entry: Entry, place: Place) {
        self.push(entry, Some(place));
    }

    /// An entry of this leg that is still to be met. Nothing waits for it.
    pub(super) fn receive(&mut self, entry: Entry) {
        self.push(entry, None);
    }

    fn push(&mut self, entry: Entry, met: Option<Place>) {
        self.size += entry.size();
        self.kept.push(Kept { entry, met, excused: false, gone: false });
        let unplaced = match self.kept.len() {
            ..MANY => return,
            MANY => 0,
            more => more - 1,
        };
        for (at, kept) in self.kept.iter().enumerate().skip(unplaced) {
            self.places.entry(kept.entry.path.clone()).or_default().push(at);
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn find(&self, kind: Kind, path: &str) -> Option<usize> {
        let is_it = |at: &usize| {
            let kept = &self.kept[*at];
            !kept.gone && kept.entry.kind() == kind && *kept.entry.path == *path
        };
        if self.kept.len() < MANY {
            return (0..self.kept.len()).find(is_it);
        }
        self.places.get(path)?.iter().copied().find(is_it)
    }

    pub(super) fn entry(&self, at: usize) -> &Entry {
        &self.kept[at].entry
    }

    pub(super) fn met_at(&self, at: usize) -> Option<Place> {
        self.kept[at].met
    }

    /// The input, outcome and staleness of a step.
    pub(super) fn step(&self, at: usize) -> (&Option<Digest>, &StepOutcome, bool) {
        match &self.kept[at].entry.body {
            Body::Step { input, outcome, stale } => (input, outcome, *stale),
            // Only steps are found as steps.
            _ => (&None, &StepOutcome::Abandoned, true),
        }
    }

    /// Changes the body of an answer.
    pub(super) fn change(&mut self, at: usize, body: Body) {
        let entry = &mut self.kept[at].entry;
        self.size -= entry.size();
        entry.body = body;
        self.size += entry.size();
    }

    pub(super) fn meet(&mut self, at: usize, place: Place) {
        self.settle(at, |kept| kept.met = Some(place));
    }

    pub(super) fn forget(&mut self, at: usize) {
        self.size -= self.kept[at].entry.size();
        self.settle(at, |kept| kept.gone = true);
    }

    /// What was recorded in this seat need not be met; everything, if it is empty.
    pub(super) fn excuse(&mut self, seat: &str) {
        for at in 0..self.old {
            if self.kept[at].entry.seat.starts_with(seat) {
                self.settle(at, |kept| kept.excused = true);
            }
        }
    }

    fn settle(&mut self, at: usize, change: impl FnOnce(&mut Kept)) {
        let was_due = at < self.old && self.kept[at].is_due();
        change(&mut self.kept[at]);
        if was_due && !self.kept[at].is_due() {
            self.unmet -= 1;
        }
        while self.frontier < self.old && !self.blocks(self.frontier) {
            self.frontier += 1;
        }
    }

    /// Whether what was recorded behind this must wait for it.
    fn blocks(&self, at: usize) -> bool {
        self.kept[at].entry.kind() == Kind::Step && self.kept[at].is_due()
    }

    /// Steps recorded behind what is dropped rest on it, perhaps: on later legs too.
    pub(super) fn make_stale(&mut self, dropped: usize) {
        for kept in self.kept.iter_mut().take(self.old).skip(dropped + 1) {
            if let Body::Step { stale, .. } = &mut kept.entry.body {
                *stale = true;
            }
        }
    }

    /// Whether all steps recorded before this have been met: history comes back in its own order.
    pub(super) fn is_due(&self, at: usize) -> bool {
        self.unordered || at >= self.old || at <= self.first_blocking()
    }

    fn first_blocking(&self) -> usize {
        (self.frontier..self.old).find(|at| self.blocks(*at)).unwrap_or(self.old)
    }

    /// Entries no longer wait for those before them. Whether they did.
    pub(super) fn give_up_order(&mut self) -> bool {
        !std::mem::replace(&mut self.unordered, true)
    }

    /// Nothing was recorded before this leg.
    pub(super) fn is_fresh(&self) -> bool {
        self.old == 0
    }

    pub(super) fn unmet(&self) -> usize {
        self.unmet
    }

    pub(super) fn steps_are_met(&self) -> bool {
        self.first_blocking() == self.old
    }

    pub(super) fn unmet_steps(&self) -> Vec<String> {
        (0..self.old).filter(|at| self.blocks(*at)).map(|at| self.entry(at).path.to_string()).collect()
    }

    /// The path of the first step that this leg recorded.
    pub(super) fn first_new_step(&self) -> Option<&str> {
        let new = self.kept.get(self.old..).unwrap_or_default();
        new.iter().find(|kept| kept.entry.kind() == Kind::Step).map(|kept| &*kept.entry.path)
    }

    pub(super) fn has_answers(&self) -> bool {
        self.kept.iter().any(|kept| !kept.gone && kept.entry.kind() == Kind::Ask)
    }

    /// The path that was taken, for the log: keys and digests, no values.
    pub(super) fn in_words(&self) -> String {
        let words = self.kept.iter().map(|kept| {
            let Entry { path, body, .. } = &kept.entry;
            let is_stale = matches!(body, Body::Step { stale: true, .. });
            let mark = match (kept.gone, kept.met.is_some(), is_stale) {
                (true, ..) => "dropped",
                (_, true, _) => "met",
                (_, _, true) => "stale",
                _ => "not met",
            };
            match body {
                Body::Answer { pin, .. } => format!("answer {path} {pin:?} {mark}"),
                Body::Step { input: Some(input), .. } => format!("step {path} {input:?} {mark}"),
                Body::Step { .. } => format!("step {path} {mark}"),
                Body::Race { winner } => format!("select {path} branch {winner} {mark}"),
                Body::Passed => format!("checkpoint {path} {mark}"),
                Body::Note { .. } => format!("note {path}"),
            }
        });
        words.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.kept.into_iter().filter(|kept| !kept.gone).map(|kept| kept.entry).collect()
    }
}
