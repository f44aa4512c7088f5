//! Records of steps: "started" before the effect, "ended" after it. The first writer wins.

/// A step's record in the row of its call.
///
/// A record is identified by its step and event. A row has one record with the same step and event: the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRecord {
    step: String,
    event: StepEvent,
    value: Vec<u8>,
}

/// An event in the life of a step.
///
/// The enum is exhaustive: its [numbers](Self::to_number) are all taken, and stores have columns of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepEvent {
    /// An attempt begins. Attempts of one step have the numbers 1, 2, ..
    Started {
        /// The number of the attempt.
        attempt: u32,
    },
    /// The step has its result, and does not run again.
    Ended,
}

impl StepRecord {
    /// Returns the record that an attempt of a step begins. `attempt` is 1 or more.
    pub fn started(step: impl Into<String>, attempt: u32) -> Self {
        Self { step: step.into(), event: StepEvent::Started { attempt }, value: Vec::new() }
    }

    /// Returns the record that a step ended with this result. The caller seals the result.
    pub fn ended(step: impl Into<String>, result: impl Into<Vec<u8>>) -> Self {
        Self { step: step.into(), event: StepEvent::Ended, value: result.into() }
    }

    /// Returns a record with this value: what a store reads back.
    pub fn from_parts(step: impl Into<String>, event: StepEvent, value: impl Into<Vec<u8>>) -> Self {
        Self { step: step.into(), event, value: value.into() }
    }

    /// Returns the record with this value. It may hold what the record of an attempt needs besides its number.
    #[must_use]
    pub fn with_value(mut self, value: impl Into<Vec<u8>>) -> Self {
        self.value = value.into();
        self
    }

    /// Returns the name of the step.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.step
    }

    /// Returns the event.
    #[must_use]
    pub fn event(&self) -> StepEvent {
        self.event
    }

    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

impl StepEvent {
    /// Returns the event as a number, for a column: the attempt, or 0 for the end.
    #[must_use]
    pub fn to_number(self) -> u32 {
        match self {
            Self::Started { attempt } => attempt,
            Self::Ended => 0,
        }
    }

    /// Returns the event with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Ended,
            attempt => Self::Started { attempt },
        }
    }
}

/// An attempt of a step that began and did not end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StepAttempt {
    /// The name of the step.
    pub step: String,
    /// The number of the attempt.
    pub attempt: u32,
}

impl StepAttempt {
    /// Returns the attempt with this number.
    pub fn new(step: impl Into<String>, attempt: u32) -> Self {
        Self { step: step.into(), attempt }
    }
}

/// The result of [`CallStore::append`](crate::CallStore::append).
///
/// The enum is exhaustive: a runner that ignored a case could repeat an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The record is stored.
    First,
    /// An earlier record with the same step and event is stored, with this value. The new record was not written.
    Existing(Vec<u8>),
}
