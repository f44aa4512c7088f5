//! The levels that are measured, and the error of the program.

/// The result of a part of the program.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The level of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    SingleUse,
    WriteAhead,
}

impl Level {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SingleUse => "single_use",
            Self::WriteAhead => "write_ahead",
        }
    }
}
