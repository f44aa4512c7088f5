//! That a URL was finished, as sessions of 2025-11-25 tell it.

use crate::ServerIdentity;
use std::sync::Arc;

/// What a person did behind a URL is finished.
///
/// > Servers **MAY** send a `notifications/elicitation/complete` notification when an out-of-band interaction started by URL
/// > mode elicitation is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElicitComplete {
    /// Who says so.
    pub server: ServerIdentity,
    /// Which one: the key of the [`UrlAsk`](super::UrlAsk).
    pub elicitation_id: String,
}

/// A callback for it.
pub(crate) type OnElicitComplete = Arc<dyn Fn(ElicitComplete) + Send + Sync>;
