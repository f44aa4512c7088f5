//! One awaited future: its identity, its waker and its state.

use crate::{
    CallSite,
    limits::{Limits, NO_ANSWER, StopReason, asked_too_often, with_reason},
    record::{AskRecord, EntryKind},
    step_waker::StepWaker,
};
use antiphon_seal::Digest;
use antiphon_wire::InputRequest;
use std::{borrow::Cow, sync::Arc, task::Waker};

/// The identity of one awaited future. It is never reused for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A future that may continue, if there is one. The leg wakes it.
#[must_use]
#[derive(Debug)]
pub(super) struct Wake(pub(super) Option<SlotId>);

impl Wake {
    pub(super) fn is_any(&self) -> bool {
        self.0.is_some()
    }
}

impl IntoIterator for Wake {
    type Item = SlotId;
    type IntoIter = std::option::IntoIter<SlotId>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The identity of a branch of a `select`, or of the handler itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchId(pub(super) u32);

impl BranchId {
    pub(super) const ROOT: Self = Self(0);

    /// Returns the branch that follows this one by `branches`.
    pub fn offset(self, branches: usize) -> Self {
        Self(self.0.saturating_add(u32::try_from(branches).unwrap_or(u32::MAX)))
    }
}

/// One awaited future.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) path: Arc<str>,
    pub(super) site: CallSite,
    pub(super) branch: BranchId,
    /// The number of the future in the order of first polls.
    pub(super) order: u64,
    pub(super) waker: SlotWaker,
    pub(super) state: SlotState,
}

/// The state of an awaited future.
#[derive(Debug)]
pub(super) enum SlotState {
    Ask(Box<AskSlot>),
    Step { input: Option<Digest>, phase: StepPhase },
    Select(SelectPhase),
    Checkpoint(CheckpointPhase),
}

impl Slot {
    pub(super) fn kind(&self) -> EntryKind {
        match self.state {
            SlotState::Ask(_) => EntryKind::Ask,
            SlotState::Step { .. } => EntryKind::Step,
            SlotState::Select(_) => EntryKind::Select,
            SlotState::Checkpoint(_) => EntryKind::Checkpoint,
        }
    }

    pub(super) fn ask(&self) -> Option<&AskSlot> {
        match &self.state {
            SlotState::Ask(asking) => Some(asking),
            _ => None,
        }
    }

    pub(super) fn step(&self) -> Option<&StepPhase> {
        match &self.state {
            SlotState::Step { phase, .. } => Some(phase),
            _ => None,
        }
    }

    /// Returns the digest of the input of a step, and the step if it runs.
    pub(super) fn running_step(&self) -> Option<(Option<Digest>, &RunningStep)> {
        match &self.state {
            SlotState::Step { input, phase: StepPhase::Running(running) } => Some((*input, running)),
            _ => None,
        }
    }
}

impl SlotState {
    /// Returns the index of the entry whose delivery resolves the future.
    pub(super) fn entry(&self) -> Option<usize> {
        match self {
            Self::Ask(asking) => match asking.phase {
                AskPhase::Recorded(at) => Some(at),
                _ => None,
            },
            Self::Step { phase: StepPhase::Recorded(at), .. }
            | Self::Select(SelectPhase::Recorded(at))
            | Self::Checkpoint(CheckpointPhase::Recorded(at)) => Some(*at),
            Self::Step { .. } | Self::Select(_) | Self::Checkpoint(_) => None,
        }
    }
}

/// The waker of an awaited future.
#[derive(Debug, Default)]
pub(super) enum SlotWaker {
    #[default]
    None,
    /// The future was polled with the waker of the handler's poll, so polling the handler polls the future. The slot
    /// keeps no clone, so that a clone that is alive belongs to other code.
    Root,
    /// The future was polled with the waker of a combinator.
    Foreign(Waker),
}

/// The identity of a waker, without a clone. Two identities are equal only for clones of one waker while one of them is
/// alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WakerId(usize, usize);

impl WakerId {
    pub(super) fn of(waker: &Waker) -> Self {
        Self(waker.data() as usize, std::ptr::from_ref(waker.vtable()) as usize)
    }
}

/// A question that the handler awaits.
#[derive(Debug)]
pub struct Question {
    /// The scopes and the key.
    pub path: Arc<str>,
    /// The question for the client.
    pub request: InputRequest,
    /// The question as JSON, if it was written already: what serializing `request` writes.
    pub text: Option<String>,
    /// The digest of the question, keyed by the call's secret.
    pub digest: Digest,
    /// The time that the person has for the answer, in seconds.
    pub within: Option<u64>,
    /// The digest of the purpose of a URL question that resolves only when the action behind its URL is finished.
    pub until: Option<Digest>,
    /// The id of a URL question in a session, if the author gave one.
    pub elicitation_id: Option<Box<str>>,
    /// The location of the call that asks.
    pub site: CallSite,
}

/// The state of an awaited question.
#[derive(Debug)]
pub(super) struct AskSlot {
    pub(super) question: Question,
    pub(super) phase: AskPhase,
}

#[derive(Debug)]
pub(super) enum AskPhase {
    /// The answer is the entry with this index.
    Recorded(usize),
    /// An answer has come.
    Answered,
    /// The person agreed, and the caller checks the action behind the URL. The answer stays in the inbox, if this leg
    /// brought one.
    Agreed(AskRecord),
    /// The question is asked.
    Asked {
        asked: AskRecord,
        /// The text for the person, if the question is asked again.
        reason: Option<Cow<'static, str>>,
        /// True if the question was sent before, and no answer to its round came.
        is_missing: bool,
    },
}

impl AskSlot {
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.phase, AskPhase::Asked { .. })
    }

    /// Returns the round in which the question was first open with its text.
    pub(super) fn first_round(&self) -> Option<u32> {
        match &self.phase {
            AskPhase::Asked { asked, .. } => Some(asked.first),
            _ => None,
        }
    }

    /// Returns the record of a question that this leg does not ask because it failed. The next leg asks the question.
    pub(super) fn not_asked(&self) -> Option<AskRecord> {
        let AskPhase::Asked { asked, reason, .. } = &self.phase else { return None };
        // The next leg counts the question when it asks again.
        let times = asked.times.saturating_sub(u8::from(reason.is_some()));
        let not_asked = Some(reason.as_deref().unwrap_or_default().into());
        Some(AskRecord { times, not_asked, ..asked.clone() })
    }

    /// Returns the reason to stop if the question was asked too often.
    pub(super) fn asked_too_often(&self, limits: &Limits) -> Option<StopReason> {
        let AskPhase::Asked { asked, reason, is_missing } = &self.phase else { return None };
        let cause = reason.as_deref().or(is_missing.then_some(NO_ANSWER));
        asked_too_often(&asked.path, asked.times, cause, limits)
    }

    /// Returns the record of a question that leaves, the question, and its text if that was written already.
    pub(super) fn into_asked(self: Box<Self>) -> Option<(AskRecord, InputRequest, Option<String>)> {
        // Taken from the box in parts: the whole is large.
        let Self { question: Question { request, text, .. }, phase } = *self;
        match phase {
            AskPhase::Asked { asked, reason: None, .. } => Some((asked, request, text)),
            AskPhase::Asked { asked, reason, .. } => {
                Some((asked, with_reason(request, reason.as_deref()), None))
            }
            _ => None,
        }
    }
}

/// The state of an awaited step.
#[derive(Debug)]
pub(super) enum StepPhase {
    /// The outcome is the entry with this index.
    Recorded(usize),
    /// A step that ended in an earlier run, and whose outcome the handler receives when it is idle. Its entry has this index.
    Ended(usize),
    /// A new step that waits.
    Held(Hold),
    /// A new step that may begin.
    Released,
    /// A new step before which the leg ends.
    Anchored,
    Running(RunningStep),
    /// A step that has begun in an earlier run, and begins again when the handler is idle. Its entry has this index.
    Interrupted {
        at: usize,
        may_begin: bool,
    },
    /// A step that has begun in an earlier run, and whose effect nobody can find out. Its entry has this index. It never resolves.
    Unresolved(usize),
    /// An earlier leg dropped the step while it ran. The step never resolves.
    Abandoned,
}

/// The event for which a new step waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// The handler is idle.
    Idle,
    /// A running step has ended, and its reserved space is free.
    Space,
}

/// A step that runs.
#[derive(Debug)]
pub(super) struct RunningStep {
    pub(super) wake: Arc<StepWaker>,
    pub(super) round: u32,
    /// The number of the handler's poll that polled the step last, if that poll used the handler's own waker.
    pub(super) root_poll: Option<u64>,
    /// The entry of the step, if it has begun in an earlier run too.
    pub(super) open: Option<usize>,
    /// The number of the attempt that runs, once the store has its start.
    pub(super) started: Option<u32>,
}

/// The state of an awaited `select`.
#[derive(Clone, Copy, Debug)]
pub(super) enum SelectPhase {
    /// The winner is the entry with this index.
    Recorded(usize),
    Undecided,
    /// The winner, and the index of its entry if there is one. Running steps of the other branches run to their end.
    Decided(u8, Option<usize>),
}

/// The state of an awaited checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) enum CheckpointPhase {
    /// The checkpoint ended an earlier leg. It is the entry with this index.
    Recorded(usize),
    /// The checkpoint ends this leg.
    Ending,
}
