//! The bounds that the engine enforces.

/// The bounds of one call. Every bound names itself in the [`StopReason`](crate::StopReason) that reaching it gives.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of requests of one call.
    pub legs: u16,
    /// The maximum number of questions in one round.
    pub asks: usize,
    /// How often one question is asked while its answers do not fit, or while its text changes.
    pub times_asked: u8,
    /// The maximum size of the answer to one form or URL, in bytes of JSON.
    pub form_answer: usize,
    /// The maximum size of one sampling or roots answer, in bytes of JSON.
    pub sampling_answer: usize,
    /// The maximum size of the record, in bytes.
    pub state: usize,
    /// The maximum size of the outcome of one step, in bytes of JSON.
    pub step_result: usize,
    /// The maximum number of legs of one call that end with state only.
    pub state_only: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            legs: 16,
            asks: 64,
            times_asked: 3,
            form_answer: 64 * 1024,
            sampling_answer: 1024 * 1024,
            state: 128 * 1024,
            step_result: 16 * 1024,
            state_only: 2,
        }
    }
}
