//! The limits that the engine enforces.

/// The limits of one call. A leg that reaches a limit stops with [`StopReason::Limit`](crate::StopReason::Limit), which
/// names the limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of requests of one call. Default: 16.
    pub legs: u16,
    /// The maximum number of questions in one round. Default: 64.
    pub asks: usize,
    /// The maximum number of times that one question is asked while its answers are invalid, its round has no answer at
    /// all, or its text changes. Default: 3.
    pub times_asked: u8,
    /// The maximum size of the answer to one form or URL, in bytes of JSON. Default: 64 KiB.
    pub form_answer: usize,
    /// The maximum size of one sampling or roots answer, in bytes of JSON. Default: 1 MiB.
    pub sampling_answer: usize,
    /// The maximum size of the record, in bytes. Default: 128 KiB.
    pub state: usize,
    /// The maximum size of the outcome of one step, in bytes of JSON. Default: 16 KiB.
    pub step_result: usize,
    /// The maximum number of legs of one call that end with state only; 255 for no limit. Default: 2.
    pub state_only_legs: u8,
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
            state_only_legs: 2,
        }
    }
}
