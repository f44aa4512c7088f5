//! The leg as the code of a handler uses it during a poll: contexts, keys, and what it reads and notes.

use crate::{
    CallSite,
    leg::{
        AnsweredAsk, AnsweredQuestion, BranchId, DeferredWork, Leg, PollContext, SlotId,
        poll::EnclosingBody,
        replay::KeyUse,
        slot::{Slot, SlotWaker},
    },
    limits::StopReason,
    record::{EntryKind, UrlReference},
};
use antiphon_wire::AskSupport;
use std::task::Waker;

/// The index of the entry of an awaited key, or `None` if the key is new.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded(pub(super) Option<usize>);

impl Leg {
    /// Begins a poll of the handler with `waker`. The driver itself was polled with `parent`.
    pub fn begin_poll(&mut self, waker: &Waker, parent: &Waker) {
        self.polls.begin(waker, parent, self.replay.history().is_replayed());
        self.steps.begin_poll();
    }

    /// Ends the poll. The caller may drop the waker after this call.
    pub fn end_poll(&mut self) {
        self.polls.end();
    }

    /// Takes the work that must be done without the lock; `None` if there is none, as nearly always.
    pub fn take_deferred_work(&mut self) -> Option<DeferredWork> {
        self.polls.take_deferred_work()
    }

    /// Enters a context for a part of the poll. Returns the context before, which the caller enters again afterwards,
    /// also after a panic.
    pub fn enter(&mut self, context: PollContext) -> PollContext {
        self.polls.enter(context)
    }

    /// Returns the present context in this branch. If `holds_steps` is true, no new step begins there.
    pub fn in_branch(&self, branch: BranchId, holds_steps: bool) -> PollContext {
        self.polls.context().in_branch(branch, holds_steps)
    }

    /// Returns the present context in the body of this step.
    pub fn in_step(&self, slot: SlotId) -> PollContext {
        self.polls.context().inside(EnclosingBody::Step(slot))
    }

    /// Returns the present context in the check of this URL question.
    pub fn in_check(&self, slot: SlotId) -> PollContext {
        self.polls.context().inside(EnclosingBody::Check(slot))
    }

    /// Wakes futures, and removes their wakers.
    pub(super) fn wake(&mut self, futures: impl IntoIterator<Item = SlotId>) {
        for id in futures {
            let waker = self.replay.slots_mut().take_waker(id);
            self.polls.wake(waker);
        }
    }

    /// Keeps the waker of a future's poll.
    pub(super) fn register(&mut self, id: SlotId, waker: &Waker) {
        let is_root = self.polls.is_root(waker);
        let displaced = self.replay.slots_mut().register(id, waker, is_root);
        self.polls.drop_later(displaced);
    }

    /// Moves a future to the branch in which it is polled now.
    pub(super) fn move_here(&mut self, id: SlotId) {
        self.replay.slots_mut().move_to(id, self.polls.branch());
    }

    /// Takes a slot out.
    pub(super) fn remove(&mut self, id: SlotId) -> Option<Slot> {
        let mut slot = self.replay.slots_mut().remove(id)?;
        if let SlotWaker::Foreign(waker) = std::mem::take(&mut slot.waker) {
            self.polls.drop_later(Some(waker));
        }
        Some(slot)
    }

    /// Finds the entry of a key that the handler begins to await here. Returns `None` if it may not: the leg is over, the
    /// key is in use, or the code is inside of a step. The leg stops in the last two cases.
    pub(super) fn find_recorded(&mut self, kind: EntryKind, path: &str, site: CallSite) -> Option<Recorded> {
        if self.is_in_step(kind, path, site) || self.is_over() {
            return None;
        }
        let first = match self.replay.key_use(kind, path) {
            KeyUse::Free(recorded) => return Some(Recorded(recorded)),
            KeyUse::Used(first) => first,
        };
        let (what, cure) = match kind {
            EntryKind::Step => ("The step", "a number from the program, `step((\"key\", i), ..)`"),
            EntryKind::Ask => ("The question", "`.key(\"..\")`, or a number from the program with `.nth(i)`"),
            EntryKind::Select => ("The select", "a number from the program, `select((\"key\", i), ..)`"),
            EntryKind::Checkpoint => {
                ("The checkpoint", "`.key(\"..\")`, or a number from the program with `.nth(i)`")
            }
        };
        self.stop(StopReason::Author(format!(
            "{what} `{path}` is used twice, at {first} and at {site}: a call uses each key once. Give it {cure}, or use \
             `ctx.scope(\"..\")`"
        )));
        None
    }

    /// Returns `true` if code inside of a step or check awaits this. The leg stops then.
    pub(super) fn is_in_step(&mut self, kind: EntryKind, path: &str, site: CallSite) -> bool {
        let name = |id| self.replay.slots().get(id).map_or("", |slot| &slot.path);
        let step = match self.polls.enclosing_body() {
            None => return false,
            Some(EnclosingBody::Step(id)) => format!("the step `{}`", name(id)),
            Some(EnclosingBody::Check(id)) => format!("the check of `{}`", name(id)),
        };
        let what = match kind {
            EntryKind::Ask => "The question",
            EntryKind::Step => "The step",
            EntryKind::Select => "The select",
            EntryKind::Checkpoint => "The checkpoint",
        };
        self.stop(StopReason::Author(format!(
            "{what} `{path}` at {site} is inside of {step}. Await it before or after that"
        )));
        true
    }
}

impl Leg {
    /// Returns the kinds of questions that the client declared when the handler first looked.
    pub fn recorded_ask_support(&self) -> Option<AskSupport> {
        self.memory.ask_support()
    }

    /// Records the kinds of questions that the client declared.
    pub fn record_ask_support(&mut self, asks: AskSupport) {
        self.memory.note_ask_support(asks);
    }

    /// Returns the reference in the URL of this question.
    pub fn url_reference(&self, question: &str) -> Option<&UrlReference> {
        self.memory.url_reference(question)
    }

    /// Records the reference in the URL of this question, and replaces an older one.
    pub fn note_url_reference(&mut self, question: &str, reference: UrlReference) {
        self.memory.note_url_reference(question, reference);
    }

    /// Returns the handler's own state.
    pub fn state(&self) -> Option<&str> {
        self.memory.state()
    }

    /// Returns the answers to the questions that the handler returned.
    pub fn answered_by_hand(&mut self) -> Vec<AnsweredAsk> {
        self.asks.inbox_mut().answered_by_hand()
    }

    /// Notes that the handler reads the answer to a question that it returned. Returns `true` if the answer is still
    /// valid.
    pub fn read_by_hand(&mut self, key: &str) -> bool {
        self.asks.inbox_mut().read(key)
    }

    /// Returns the questions whose answers the handler has received, in the order in which it received them. Answers to
    /// questions that the handler returned are those of the last round. Each leg of the call begins with the same ones.
    pub fn answered_questions(&mut self) -> Vec<AnsweredQuestion<'_>> {
        self.asks.answered(&mut self.replay)
    }

    /// Returns `true` if the question with this path has an answer, or was agreed to in an earlier leg.
    pub fn has_answer(&mut self, path: &str) -> bool {
        self.replay.history_mut().find(EntryKind::Ask, path).is_some()
            || self.asks.inbox().find(path).is_some()
    }

    /// Returns the id of a URL question to which the author gave none. The id is the same each time the question is
    /// asked.
    pub fn elicitation_id(&self, path: &str) -> Option<String> {
        // No scope can have this name, because `#` is not allowed in keys.
        Some(self.call.as_ref()?.secret().idempotency_key("#elicitation", path))
    }

    /// Notes that a question failed. The handler may drop futures beside it because of that.
    pub fn note_refusal(&mut self) {
        self.observations.note_failure();
    }

    /// Returns `true` if the handler has met the cancellation of its task, or there is none.
    pub fn has_met_cancellation(&self) -> bool {
        !self.steps.refuses()
    }
}
