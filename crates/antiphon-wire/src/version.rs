//! Protocol versions. Only this table and the legacy adapters compare them.

use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt};

/// A protocol version, a date such as `2026-07-28`. Unknown versions are kept as they were sent.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProtocolVersion(Cow<'static, str>);

impl ProtocolVersion {
    /// The revision these types describe.
    pub const V2026_07_28: Self = Self(Cow::Borrowed("2026-07-28"));

    /// Every version that conveys identity and capabilities with each request, newest first.
    pub const MODERN: &'static [Self] = &[Self::V2026_07_28];

    /// A version as a peer named it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// The modern version of this name; the newest for any other.
    pub fn modern(text: &str) -> Self {
        Self::MODERN.iter().find(|known| known.0 == text).unwrap_or(&Self::V2026_07_28).clone()
    }

    /// The version as it is written on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a version that these types can speak.
    pub fn is_modern(&self) -> bool {
        Self::is_modern_text(&self.0)
    }

    /// [`is_modern`](Self::is_modern), without building a version first.
    pub fn is_modern_text(text: &str) -> bool {
        Self::MODERN.iter().any(|known| known.0 == text)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
