//! The reasons that a text has no canonical form.

use std::fmt;

/// The maximum number of arrays and objects that may be open at once.
///
/// Deeper text is rejected and not walked, so that the walk's own recursion is bounded.
pub const MAX_DEPTH: usize = 128;

/// The reason that a JSON text has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextFault {
    /// An object names one member twice, after unescaping: two decoders could read two different values.
    ///
    /// Holds the name, cut after 64 characters; it comes from the peer, so print it escaped.
    DuplicateName(String),
    /// More than [`MAX_DEPTH`] arrays and objects are open at once.
    TooDeep,
    /// The text is not JSON.
    Malformed,
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateName(name) => write!(f, "duplicate member name {name:?}"),
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
            Self::Malformed => f.write_str("not well-formed JSON"),
        }
    }
}

impl std::error::Error for TextFault {}
