//! The entries of the record, the futures that the handler awaits, and the order in which the one reaches the other; also the answers
//! that have come and were not delivered.

use super::{
    history::History,
    slot::{BranchId, SlotId, SlotState, Wake},
    slots::Slots,
};
use crate::{
    CallSite,
    limits::{InputResponse, read_answer},
    record::{AskRecord, Continuation, Entry, EntryKind, ReceivedAnswer},
};
use antiphon_wire::{Action, InputRequest};
use serde::Deserialize;
use std::sync::Arc;

/// The entries of a call, the futures of its handler, and the connection between the two.
#[derive(Debug, Default)]
pub(super) struct Replay {
    history: History,
    slots: Slots,
    /// Futures that continue when all recorded entries were replayed.
    after_replay: Vec<SlotId>,
    /// True if a new step has begun or a `select` was decided: what follows has never happened before.
    is_past_history: bool,
}

/// The use of a key so far.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyUse {
    /// No code has awaited it in this leg. Its entry has this index, if there is one.
    Free(Option<usize>),
    /// The call at this location has awaited it.
    Used(CallSite),
}

impl Replay {
    /// Returns the replay of these entries: those of the state, and those of earlier runs of the leg. `is_written` is true if the
    /// deliveries of this run are written to a store.
    pub(super) fn of(entries: Vec<Entry>, stored: Option<Box<Continuation>>, is_written: bool) -> Self {
        Self { history: History::of(entries, stored, is_written), ..Self::default() }
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Takes the entries for the next leg.
    pub(super) fn take_history(&mut self) -> History {
        std::mem::take(&mut self.history)
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    pub(super) fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Returns the use of a key that is awaited now.
    pub(super) fn key_use(&mut self, kind: EntryKind, path: &str) -> KeyUse {
        let waiting = self.slots.find(kind, path).map(|slot| slot.site);
        let recorded = self.history.find(kind, path);
        let first = waiting.or_else(|| self.history.delivered_at(recorded?));
        first.map_or(KeyUse::Free(recorded), KeyUse::Used)
    }

    /// Adds an awaited future. The future is woken when the entry that its state names is due.
    pub(super) fn add(
        &mut self,
        path: Arc<str>,
        site: CallSite,
        branch: BranchId,
        state: SlotState,
    ) -> SlotId {
        let recorded = state.entry();
        let id = self.slots.add(path, site, branch, state);
        if let Some(at) = recorded {
            self.history.set_waiting(at, Some(id));
        }
        id
    }

    /// Delivers an entry to the call at this location, and moves to the next one in order.
    pub(super) fn deliver(&mut self, at: usize, site: CallSite) -> Wake {
        self.history.deliver(at, site);
        self.history.advance()
    }

    /// Delivers the winner of a select: what its other branches did need not be reached. Moves to the next entry in order.
    pub(super) fn deliver_winner(&mut self, at: usize, select: &str, site: CallSite) -> Wake {
        self.history.deliver(at, site);
        self.history.lose(select);
        self.history.advance()
    }

    /// Returns `true` if this leg has begun a new step or decided a `select`.
    pub(super) fn is_past_history(&self) -> bool {
        self.is_past_history
    }

    /// Notes that code which follows has not run in an earlier leg.
    pub(super) fn pass_history(&mut self) {
        self.is_past_history = true;
    }

    /// Returns `true` if a future may wait for an entry that was not replayed.
    pub(super) fn waits_for_entry(&self) -> bool {
        !self.history.is_replayed() && !self.slots.is_empty()
    }

    /// Lets a future wait until all recorded entries were replayed.
    pub(super) fn wait(&mut self, id: SlotId) {
        if !self.after_replay.contains(&id) {
            self.after_replay.push(id);
        }
    }

    /// Notes that the future does not wait any more.
    pub(super) fn stop_waiting(&mut self, id: SlotId) {
        self.after_replay.retain(|waiting| *waiting != id);
    }

    /// Takes the futures that wait until all recorded entries were replayed, if that is so.
    #[must_use]
    pub(super) fn take_waiting(&mut self) -> Vec<SlotId> {
        match self.history.is_replayed() {
            true => std::mem::take(&mut self.after_replay),
            false => Vec::new(),
        }
    }

    /// Removes the entries of later rounds than this one; steps become stale. Selects are decided again. Returns the futures that
    /// wait for these entries, and `true` if an entry was delivered in this leg.
    #[must_use]
    pub(super) fn make_stale(&mut self, round: u32) -> (Vec<SlotId>, bool) {
        let stale = self.history.make_stale(round);
        let history = &mut self.history;
        self.slots.branches_mut().decide_again(|select| history.find(EntryKind::Select, select).is_some());
        stale
    }
}

/// The answers, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    answers: Vec<IncomingAnswer>,
}

/// An answer that has come.
#[derive(Debug)]
struct IncomingAnswer {
    received: ReceivedAnswer,
    /// True if the question was asked by hand and a handler has read the answer.
    was_read: bool,
    /// True if the future that asked was dropped before it took the answer.
    given_up: bool,
}

/// A question that a handler returned, with its valid answer.
#[derive(Clone, Debug)]
pub struct AnsweredAsk {
    /// The key of the question.
    pub key: Arc<str>,
    /// The question as JSON, as it was asked.
    pub question: Arc<str>,
    /// The answer.
    pub response: InputResponse,
}

impl IncomingAnswer {
    fn is_of(&self, path: &str) -> bool {
        *self.received.asked.path == *path
    }

    fn is_by_hand(&self) -> bool {
        self.received.asked.question.is_some()
    }

    /// Returns `true` if the person declined or cancelled.
    fn is_refusal(&self) -> bool {
        #[derive(Deserialize)]
        struct Head {
            action: Action,
        }
        let head = self.received.text.as_deref().and_then(|text| serde_json::from_str::<Head>(text).ok());
        head.is_some_and(|head| head.action != Action::Accept)
    }
}

impl Inbox {
    /// Returns the inbox with the answers of the record. This number of further ones may come.
    pub(super) fn of(received: Vec<ReceivedAnswer>, further: usize) -> Self {
        let mut inbox = Self { answers: Vec::with_capacity(received.len() + further) };
        received.into_iter().for_each(|received| inbox.push(received));
        inbox
    }

    pub(super) fn push(&mut self, received: ReceivedAnswer) {
        self.answers.push(IncomingAnswer { received, was_read: false, given_up: false });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Returns the answer to the question with this path.
    pub(super) fn find(&self, path: &str) -> Option<&ReceivedAnswer> {
        self.answers.iter().find(|incoming| incoming.is_of(path)).map(|incoming| &incoming.received)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ReceivedAnswer> {
        self.answers.iter().map(|incoming| &incoming.received)
    }

    fn find_mut(&mut self, path: &str) -> Option<&mut IncomingAnswer> {
        self.answers.iter_mut().find(|incoming| incoming.is_of(path))
    }

    /// Notes whether the future that asked was dropped before it took its answer.
    pub(super) fn set_given_up(&mut self, path: &str, given_up: bool) {
        if let Some(incoming) = self.find_mut(path) {
            incoming.given_up = given_up;
        }
    }

    /// Takes the answer to the question with this path.
    pub(super) fn take(&mut self, path: &str) -> Option<ReceivedAnswer> {
        let at = self.answers.iter().position(|incoming| incoming.is_of(path))?;
        Some(self.answers.remove(at).received)
    }

    /// Removes the answers to the question with this path.
    pub(super) fn remove(&mut self, path: &str) {
        self.answers.retain(|incoming| !incoming.is_of(path));
    }

    /// Removes the answer to an awaited question. One to a question asked by hand stays, because the handler may read it again.
    pub(super) fn remove_awaited(&mut self, path: &str) {
        self.answers.retain(|incoming| !incoming.is_of(path) || incoming.is_by_hand());
    }

    /// Removes the answers to questions of later rounds than this one. Returns the paths of the questions.
    pub(super) fn remove_after(&mut self, round: u32) -> Vec<Arc<str>> {
        let mut removed = Vec::new();
        self.answers.retain(|incoming| {
            let AskRecord { round: asked_in, path, .. } = &incoming.received.asked;
            if *asked_in > round {
                removed.push(path.clone());
            }
            *asked_in <= round
        });
        removed
    }

    /// Takes all answers for the record.
    pub(super) fn take_all(&mut self) -> Vec<ReceivedAnswer> {
        std::mem::take(&mut self.answers).into_iter().map(|incoming| incoming.received).collect()
    }

    /// Returns `true` if an answer waits for a future that takes it.
    pub(super) fn has_awaited(&self) -> bool {
        self.answers.iter().any(|incoming| !incoming.given_up && !incoming.is_by_hand())
    }

    /// Returns the refusals that the handler has not reached, with the rounds of their questions. A question in a branch that has
    /// lost its race need not be reached: it was answered too late.
    pub(super) fn unread_refusals<'i>(
        &'i self,
        history: &'i History,
    ) -> impl Iterator<Item = (&'i str, u32)> {
        // A question that was dropped before it took its answer was still asked.
        let unread = self.answers.iter().filter(|incoming| !incoming.was_read && !incoming.given_up);
        let refused =
            unread.filter(|incoming| incoming.is_refusal()).map(|incoming| &incoming.received.asked);
        refused.filter(|asked| !history.has_lost(&asked.within)).map(|asked| (&*asked.path, asked.round))
    }

    /// Returns `true` if a handler has read the answer to a question that was open in this round.
    pub(super) fn has_read_of(&self, round: u32) -> bool {
        self.answers.iter().any(|incoming| incoming.was_read && incoming.received.asked.was_open_in(round))
    }

    /// Returns the question with this path whose answer no handler has read.
    pub(super) fn unread_by_hand(&self, path: &str) -> Option<&AskRecord> {
        let incoming = self.answers.iter().find(|incoming| incoming.is_of(path))?;
        (!incoming.was_read && incoming.is_by_hand()).then_some(&incoming.received.asked)
    }

    /// Returns the first round of those questions asked by hand whose answers no handler has read, and that are now asked with
    /// another text.
    pub(super) fn first_changed_round(&self, asked: &[AskRecord]) -> Option<u32> {
        let unread = self.answers.iter().filter(|incoming| incoming.is_by_hand() && !incoming.was_read);
        let changed = unread.map(|incoming| &incoming.received.asked).filter(|before| {
            asked.iter().any(|now| now.path == before.path && !now.digest.matches(&before.digest))
        });
        changed.map(|before| before.round).min()
    }

    /// Removes the answers to questions asked by hand.
    pub(super) fn remove_by_hand(&mut self) {
        self.answers.retain(|incoming| !incoming.is_by_hand());
    }

    /// Returns the answers to the questions that the handler returned.
    pub(super) fn answered_by_hand(&mut self) -> Vec<AnsweredAsk> {
        self.answers.iter_mut().filter_map(|incoming| incoming.received.answered()).collect()
    }

    /// Notes that the handler reads an answer. Returns `true` if its question was asked by hand.
    pub(super) fn read(&mut self, path: &str) -> bool {
        let Some(incoming) = self.find_mut(path) else { return false };
        incoming.was_read = true;
        incoming.is_by_hand()
    }
}

impl ReceivedAnswer {
    /// Returns the answer to a question that was asked by hand.
    fn answered(&mut self) -> Option<AnsweredAsk> {
        let question = self.asked.question.clone()?;
        let response = self.response.take().or_else(|| {
            let request: InputRequest = serde_json::from_str(&question).ok()?;
            read_answer(&request, self.text.as_deref()?).ok()
        });
        Some(AnsweredAsk { key: Arc::clone(&self.asked.path), question, response: response? })
    }
}
