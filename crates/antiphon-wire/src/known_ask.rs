//! The input requests that this version knows, as exhaustive enums.
//!
//! [`InputRequest`] and [`AskKind`] may grow, so a match over one of them has an arm for everything else in each other crate.
//! The crates of this SDK match over the enums of this module: a new kind does not compile until each of them handles it.

use crate::{AskKind, CreateMessageParams, ElicitRequest, FormSchema, InputRequest, UnknownAsk};

/// An input request that this version knows.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum KnownAsk<'a> {
    Form { message: &'a str, requested_schema: &'a FormSchema },
    Url { message: &'a str, url: &'a str },
    Sampling(&'a CreateMessageParams),
    Roots,
}

/// A kind of input request that this version knows.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownKind {
    Form,
    Url,
    Sampling,
    Roots,
}

impl InputRequest {
    /// Returns the input request in the form that the crates of this SDK match over.
    ///
    /// # Errors
    /// The input request, if this version does not know it.
    #[doc(hidden)]
    pub fn known(&self) -> Result<KnownAsk<'_>, &UnknownAsk> {
        match self {
            Self::Elicit(ElicitRequest::Form { message, requested_schema }) => {
                Ok(KnownAsk::Form { message, requested_schema })
            }
            Self::Elicit(ElicitRequest::Url { message, url }) => Ok(KnownAsk::Url { message, url }),
            Self::CreateMessage(params) => Ok(KnownAsk::Sampling(params)),
            Self::ListRoots { .. } => Ok(KnownAsk::Roots),
            Self::Unknown(unknown) => Err(unknown),
        }
    }
}

impl AskKind {
    /// Returns the kind in the form that the crates of this SDK match over; none if this version does not know the kind.
    #[doc(hidden)]
    pub fn known(self) -> Option<KnownKind> {
        match self {
            Self::Form => Some(KnownKind::Form),
            Self::Url => Some(KnownKind::Url),
            Self::Sampling => Some(KnownKind::Sampling),
            Self::Roots => Some(KnownKind::Roots),
            Self::Unknown => None,
        }
    }
}
