//! The settings of the replay check, and its findings.

use antiphon_seal::CallId;
use std::fmt;

/// With [`ReplayCheck::Sampled`], one call in so many.
const ONE_IN: u8 = 16;

/// Whether handlers are run twice, to see that they ask the same again.
///
/// A handler that asks runs again from its top with each request of its call. What it does before a question must lead to
/// the same question every time; what may not be done twice, or comes out differently, belongs in a
/// [`step`](super::Ctx::step). Before a round leaves, the check runs the handler once more, as the next request will, and
/// reports where it does not come to the same questions. No step runs in it and nothing is sent; but all else that the
/// handler does outside of steps is done once more, its input and output included. The reply is the same with it and
/// without.
///
/// What it finds is a [`ReplayFault`]. Questions that were asked by returning them are not checked, nor is how far other work
/// came beside a question that left at the end of its [`Limits::grace`](super::Limits::grace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayCheck {
    /// Never. The default in release builds.
    Off,
    /// In one of sixteen calls, which is chosen by the call's id: always the same on every instance.
    Sampled,
    /// In every call. The default in debug builds.
    Always,
}

impl Default for ReplayCheck {
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Always } else { Self::Off }
    }
}

impl ReplayCheck {
    /// `None` is a call that has not begun to ask.
    pub(crate) fn covers(self, call: Option<CallId>) -> bool {
        match self {
            Self::Off => false,
            Self::Sampled => call.is_some_and(|call| call.as_bytes()[0].is_multiple_of(ONE_IN)),
            Self::Always => true,
        }
    }
}

/// What is wrong with a handler that will run again. Shown, it is a sentence for the author, with keys and no values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayFault {
    /// Run again, it does not ask this question: something it did not record decides.
    AskMissing(FaultPlace),
    /// Run again, it asks this question in other words, or with another form: its answer would be dropped.
    AskChanged(FaultPlace),
    /// Run again, it asks this question too.
    AskAdded(FaultPlace),
    /// Run again, it would run this step, which it did not run before.
    StepAdded(FaultPlace),
    /// It gave this question up before it was answered, by `select!` or `timeout` perhaps: which of several came first is
    /// remembered by [`Ctx::select`](super::Ctx::select) only.
    AskDropped(FaultPlace),
    /// It gave this step up before it came to an outcome, by `select!` or `timeout` perhaps, or by `try_join!` when another
    /// step had failed.
    StepDropped(FaultPlace),
    /// This step runs before a question that a client may be unable to show: such a client is refused once the step is
    /// done. The tool should say what it `needs`. Reported once for each tool, prompt and resource.
    #[non_exhaustive]
    StepBeforeAsk {
        /// The step.
        step: FaultPlace,
        /// The key of the question.
        ask: String,
    },
    /// Run again, it takes another path than the one recorded, of which this is a part.
    Diverged(FaultPlace),
    /// Run again, it panics. The key is empty.
    Panicked(FaultPlace),
}

/// Where a fault was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultPlace {
    /// The name of the tool or prompt, or the URI of the resource.
    pub target: String,
    /// The key of the question or step, scopes included.
    pub key: String,
    /// The call's id in the log.
    pub call: Option<CallId>,
}

impl ReplayFault {
    /// Where it was found; the step, of [`StepBeforeAsk`](Self::StepBeforeAsk).
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
                " does not ask `{key}` when it runs again: what decides must be the same each time, or a step"
            ),
            Self::AskChanged(_) => write!(
                f,
                " asks `{key}` differently when it runs again: what the question is made of must be the same each time, or come from a step"
            ),
            Self::AskAdded(_) => write!(
                f,
                " asks `{key}` only when it runs again: what decides must be the same each time, or a step"
            ),
            Self::StepAdded(_) => write!(
                f,
                " comes to the step `{key}` only when it runs again: what decides must be the same each time, or a step"
            ),
            Self::AskDropped(_) => write!(
                f,
                " gave up the question `{key}`: use `.within(..)` instead of `timeout` or a timer, and `ctx.select` for what is raced"
            ),
            Self::StepDropped(_) => write!(
                f,
                " gave up the step `{key}`: use `join!` and then `?` instead of `try_join!`, `timeout` inside of the step, and `ctx.select` instead of `select!`"
            ),
            Self::StepBeforeAsk { ask, .. } => write!(
                f,
                " runs the step `{key}` before the question `{ask}`, which not every client can show: say that it needs it"
            ),
            Self::Diverged(_) => {
                write!(f, " takes another path than recorded when it runs again, at `{key}`")
            }
            Self::Panicked(_) => write!(f, " panics when it runs again"),
        }
    }
}

/// Whether to look, and whom to tell.
pub(crate) struct Replay {
    pub(crate) check: ReplayCheck,
    pub(crate) report: Box<dyn Fn(&ReplayFault) + Send + Sync>,
    /// Hears what the log is told and the caller is not.
    pub(crate) causes: Option<Box<dyn Fn(String) + Send + Sync>>,
}

impl Default for Replay {
    fn default() -> Self {
        let report = |fault: &ReplayFault| tracing::error!(%fault, "a handler does not repeat itself");
        Self { check: ReplayCheck::default(), report: Box::new(report), causes: None }
    }
}

impl Replay {
    pub(crate) fn is_on(&self) -> bool {
        self.check != ReplayCheck::Off
    }

    /// Why a request fails, for whoever wants to know besides the log.
    pub(crate) fn report_cause(&self, cause: impl FnOnce() -> String) {
        if let Some(hear) = &self.causes {
            hear(cause());
        }
    }
}
