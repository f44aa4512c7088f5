//! The settings of the replay check, and its findings.

use antiphon_seal::CallId;
use antiphon_wire::escaped;
use std::fmt;

/// The divisor of [`ReplayCheck::Sampled`]: one call in this many is checked.
const ONE_IN: u8 = 16;

/// The calls in which a handler is run twice, to check that it asks the same questions again.
///
/// A handler that asks runs again from its top with each request of its call. Its code before a question must lead to
/// the same question every time. Code that must not run twice, or has varying results, belongs in a
/// [`step`](crate::Ctx::step). Before a round leaves, the check runs the handler once more, as the next request will,
/// and reports if it does not reach the same questions. The second run executes no step and sends nothing, but it
/// repeats all code outside of steps, including input and output. The check does not change the reply.
///
/// A finding is a [`ReplayFault`]. Questions that a handler returns are not checked, nor is the progress of other work
/// beside a question that left at the end of its [`Limits::grace`](crate::Limits::grace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayCheck {
    /// No calls. The default in release builds.
    Off,
    /// One call in sixteen, selected by the call's id, so that all instances select the same calls.
    Sampled,
    /// Every call. The default in debug builds.
    Always,
}

impl Default for ReplayCheck {
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Always } else { Self::Off }
    }
}

impl ReplayCheck {
    /// Returns whether the call is checked. `None` is a call that has not asked yet.
    pub(crate) fn covers(self, call: Option<CallId>) -> bool {
        match self {
            Self::Off => false,
            Self::Sampled => call.is_some_and(|call| call.as_bytes()[0].is_multiple_of(ONE_IN)),
            Self::Always => true,
        }
    }
}

/// A fault of a handler that will run again. Its `Display` is a sentence for the author, with keys and without values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayFault {
    /// The second run does not ask this question: the decision depends on something unrecorded.
    AskMissing(FaultPlace),
    /// The second run asks this question with another text or form: its answer would be dropped.
    AskChanged(FaultPlace),
    /// The second run also asks this question.
    AskAdded(FaultPlace),
    /// The second run would run this step, which the first did not run.
    StepAdded(FaultPlace),
    /// The handler dropped this question before it was answered, perhaps with `select!` or `timeout`: only
    /// [`Ctx::select`](crate::Ctx::select) records which of several futures came first.
    AskDropped(FaultPlace),
    /// The handler dropped this step before its outcome, perhaps with `select!` or `timeout`, or with `try_join!` after
    /// another step failed.
    StepDropped(FaultPlace),
    /// This step runs before a question that a client may not support: such a client is refused after the step has run.
    /// The tool should declare its `needs`. Reported once for each tool, prompt and resource.
    #[non_exhaustive]
    StepBeforeAsk {
        /// The step.
        step: FaultPlace,
        /// The key of the question.
        ask: String,
    },
    /// The second run takes a path that differs from the record, at this key.
    Diverged(FaultPlace),
    /// The second run panics. The key is empty.
    Panicked(FaultPlace),
}

/// The place of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultPlace {
    /// The name of the tool or prompt, or the URI of the resource.
    pub target: String,
    /// The key of the question or step, scopes included.
    pub key: String,
    /// The call's id, as logged.
    pub call: Option<CallId>,
}

impl ReplayFault {
    /// Returns the place; for [`StepBeforeAsk`](Self::StepBeforeAsk), that of the step.
    pub fn place(&self) -> &FaultPlace {
        match self {
            Self::AskMissing(place)
            | Self::AskChanged(place)
            | Self::AskAdded(place)
            | Self::StepAdded(place)
            | Self::AskDropped(place)
            | Self::StepDropped(place)
            | Self::StepBeforeAsk { step: place, .. }
            | Self::Diverged(place)
            | Self::Panicked(place) => place,
        }
    }
}

impl fmt::Display for ReplayFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FaultPlace { target, key, call } = self.place();
        write!(f, "`{target}`")?;
        if let Some(call) = call {
            write!(f, " (call {call})")?;
        }
        match self {
            Self::AskMissing(_) => write!(
                f,
                " does not ask `{key}` when it runs again: the condition must be the same each time, or come from a step"
            ),
            Self::AskChanged(_) => write!(
                f,
                " asks `{key}` differently when it runs again: its content must be the same each time, or come from a step"
            ),
            Self::AskAdded(_) => write!(
                f,
                " asks `{key}` only when it runs again: the condition must be the same each time, or come from a step"
            ),
            Self::StepAdded(_) => write!(
                f,
                " reaches the step `{key}` only when it runs again: the condition must be the same each time, or come from a step"
            ),
            Self::AskDropped(_) => write!(
                f,
                " dropped the question `{key}`: use `.timeout(..)` instead of `timeout` or a timer, and `ctx.select` to select among futures"
            ),
            Self::StepDropped(_) => write!(
                f,
                " dropped the step `{key}`: use `join!` and then `?` instead of `try_join!`, `timeout` inside of the step, and `ctx.select` instead of `select!`"
            ),
            Self::StepBeforeAsk { ask, .. } => write!(
                f,
                " runs the step `{key}` before the question `{ask}`, which not every client supports: declare it with `needs`"
            ),
            Self::Diverged(_) => {
                write!(f, " takes a different path than its record when it runs again, at `{key}`")
            }
            Self::Panicked(_) => write!(f, " panics when it runs again"),
        }
    }
}

/// The settings of the replay check.
pub(crate) struct Replay {
    pub(crate) check: ReplayCheck,
    pub(crate) report: Box<dyn Fn(&ReplayFault) + Send + Sync>,
    /// Receives the causes that are logged and not sent to the caller.
    pub(crate) causes: Option<Box<dyn Fn(String) + Send + Sync>>,
}

impl Default for Replay {
    fn default() -> Self {
        let report = |fault: &ReplayFault| tracing::error!(fault = %escaped(fault), "a handler does not ask the same when it runs again");
        Self { check: ReplayCheck::default(), report: Box::new(report), causes: None }
    }
}

impl Replay {
    pub(crate) fn is_on(&self) -> bool {
        self.check != ReplayCheck::Off
    }

    /// Passes the cause of a failed request to the observer, if there is one.
    pub(crate) fn report_cause(&self, cause: impl FnOnce() -> String) {
        if let Some(observer) = &self.causes {
            observer(cause());
        }
    }
}
