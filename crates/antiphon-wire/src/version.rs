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

    /// The last revision with a handshake.
    pub const V2025_11_25: Self = Self(Cow::Borrowed("2025-11-25"));
    /// The revision that brought elicitation.
    pub const V2025_06_18: Self = Self(Cow::Borrowed("2025-06-18"));
    /// The revision that brought Streamable HTTP, and the only one with batches.
    pub const V2025_03_26: Self = Self(Cow::Borrowed("2025-03-26"));
    /// The first revision: stdio, and HTTP with a stream of its own.
    pub const V2024_11_05: Self = Self(Cow::Borrowed("2024-11-05"));

    /// Every version that begins with `initialize`, newest first.
    pub const LEGACY: &'static [Self] =
        &[Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];

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

    /// The legacy version of this name.
    pub fn legacy(text: &str) -> Option<Self> {
        Self::LEGACY.iter().find(|known| known.0 == text).cloned()
    }

    /// Whether this version begins with `initialize`.
    pub fn is_legacy(&self) -> bool {
        Self::LEGACY.contains(self)
    }

    /// Whether this legacy version has Streamable HTTP.
    pub fn has_streamable_http(&self) -> bool {
        self.is_legacy() && *self != Self::V2024_11_05
    }

    /// Whether an HTTP client of this legacy version repeats it in `MCP-Protocol-Version`, and structured results exist.
    pub fn has_version_header(&self) -> bool {
        matches!(self.as_str(), "2025-06-18" | "2025-11-25")
    }

    /// Whether content of this legacy version may link to a resource.
    pub fn has_resource_links(&self) -> bool {
        self.has_version_header()
    }

    /// Whether content of this legacy version may be sound.
    pub fn has_audio(&self) -> bool {
        self.has_streamable_http()
    }

    /// Whether messages of this legacy version may come in batches.
    ///
    /// > MCP implementations **MAY** support sending JSON-RPC batches, but **MUST** support receiving JSON-RPC batches.
    pub fn has_batches(&self) -> bool {
        *self == Self::V2025_03_26
    }

    /// Whether a legacy client of this version can be asked at all with a form.
    pub fn has_elicitation(&self) -> bool {
        self.has_version_header()
    }

    /// Whether elicitation of this legacy version has modes, and with them URLs; and event streams begin with an event
    /// that primes the client.
    pub fn has_elicitation_modes(&self) -> bool {
        *self == Self::V2025_11_25
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
