//! Races: who won, and what becomes of the others.

use super::{Machine, Place};
use crate::server::round::{
    BRANCHES,
    journal::{Body, Entry, Kind},
};

impl Machine {
    /// A race of so many branches begins: the recorded winner, if it was decided. `false` in the second place ends it.
    pub(crate) fn race(&mut self, path: &str, branches: usize, place: Place) -> (Option<u8>, bool) {
        if self.refuse_in_step("The select", path, place) || self.is_over() {
            return (None, false);
        }
        let at = self.history.find(Kind::Race, path);
        let running = self.races.iter().find(|(known, _)| **known == *path);
        if let Some(first) = running.map(|(_, first)| *first).or(at.and_then(|at| self.history.met_at(at))) {
            self.used_twice("The select", path, first, place);
            return (None, false);
        }
        let Some(at) = at else {
            self.races.push((path.into(), place));
            return (None, true);
        };
        let Body::Race { winner } = self.history.entry(at).body else { return (None, true) };
        if usize::from(winner) >= branches {
            self.diverged(path, "the branch that came first is not there any more");
            return (None, false);
        }
        self.history.meet(at, place);
        self.lose(path, winner);
        // What waited for what the others recorded need not.
        self.epoch += 1;
        (Some(winner), true)
    }

    /// A race is over, or was dropped.
    pub(crate) fn end_race(&mut self, path: &str) {
        self.races.retain(|(known, _)| **known != *path);
    }

    /// A race is decided.
    pub(crate) fn decide(&mut self, path: &str, winner: u8, place: Place) {
        let entry = Entry { path: path.into(), seat: self.seat.clone(), body: Body::Race { winner } };
        self.history.record(entry, place);
        self.lose(path, winner);
        self.epoch += 1;
    }

    /// What the other branches recorded need not be met, and what they ask is not asked.
    pub(super) fn lose(&mut self, path: &str, winner: u8) {
        for branch in (0..BRANCHES).filter(|branch| *branch != winner) {
            let seat = self.seat_in(path, branch);
            self.history.excuse(&seat);
            self.pending.retain(|pending| !pending.asked.seat.starts_with(&*seat));
            self.open.retain(|open| !open.asked.seat.starts_with(&*seat));
            self.closed.push(seat);
        }
    }

    pub(super) fn seat_in(&self, path: &str, branch: u8) -> Box<str> {
        // Paths have no spaces: no seat is the beginning of another one by chance.
        format!("{}{path} {branch} ", self.seat).into()
    }

    /// Takes the seat of a branch; gives the one it was in.
    pub(crate) fn sit(&mut self, path: &str, branch: u8) -> Box<str> {
        let seat = self.seat_in(path, branch);
        std::mem::replace(&mut self.seat, seat)
    }

    pub(crate) fn stand(&mut self, seat: Box<str>) {
        self.seat = seat;
    }

    /// Whether a step runs in one of the branches of this race.
    pub(crate) fn runs_in(&self, path: &str) -> bool {
        let prefix = format!("{}{path} ", self.seat);
        self.running.iter().any(|running| running.seat.starts_with(&prefix))
    }
}
