//! Protocol versions. Only this table and the legacy adapters compare versions.

use crate::foreign_text::escaped;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt};

/// The maximum number of characters of a version that `Display` prints. Those of the protocol have ten.
const SHOWN: usize = 40;

/// A protocol version: a date such as `2026-07-28`. Unknown versions are kept as sent.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProtocolVersion(Cow<'static, str>);

impl ProtocolVersion {
    /// The revision that these types implement.
    pub const V2026_07_28: Self = Self(Cow::Borrowed("2026-07-28"));

    /// The last revision with a handshake.
    pub const V2025_11_25: Self = Self(Cow::Borrowed("2025-11-25"));
    /// The revision that introduced elicitation.
    pub const V2025_06_18: Self = Self(Cow::Borrowed("2025-06-18"));
    /// The revision that introduced Streamable HTTP, and the only one with batches.
    pub const V2025_03_26: Self = Self(Cow::Borrowed("2025-03-26"));
    /// The first revision: stdio, and HTTP with a separate event stream.
    pub const V2024_11_05: Self = Self(Cow::Borrowed("2024-11-05"));

    /// All versions that begin with `initialize`, newest first.
    pub const LEGACY: &'static [Self] =
        &[Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];

    /// All versions that send identity and capabilities with each request, newest first.
    pub const MODERN: &'static [Self] = &[Self::V2026_07_28];

    /// Creates a version from the text that a peer sent.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// Returns the modern version of this name, or the newest modern version for any other name.
    pub fn modern(text: &str) -> Self {
        Self::MODERN.iter().find(|known| known.0 == text).unwrap_or(&Self::V2026_07_28).clone()
    }

    /// Returns the legacy version of this name, if there is one.
    pub fn legacy(text: &str) -> Option<Self> {
        Self::LEGACY.iter().find(|known| known.0 == text).cloned()
    }

    /// Returns `true` if this version begins with `initialize`.
    pub fn is_legacy(&self) -> bool {
        Self::LEGACY.contains(self)
    }

    /// Returns `true` if this legacy version has Streamable HTTP.
    pub fn has_streamable_http(&self) -> bool {
        self.is_legacy() && *self != Self::V2024_11_05
    }

    /// Returns `true` if an HTTP client of this legacy version repeats the version in `MCP-Protocol-Version`.
    pub fn has_version_header(&self) -> bool {
        matches!(self.as_str(), "2025-06-18" | "2025-11-25")
    }

    /// Returns `true` if tools of this legacy version have output schemas, and their results structured content. Both
    /// are objects.
    pub fn has_structured_content(&self) -> bool {
        matches!(self.as_str(), "2025-06-18" | "2025-11-25")
    }

    /// Returns `true` if content of this legacy version may link to a resource.
    pub fn has_resource_links(&self) -> bool {
        matches!(self.as_str(), "2025-06-18" | "2025-11-25")
    }

    /// Returns `true` if content of this legacy version may be audio.
    pub fn has_audio(&self) -> bool {
        self.has_streamable_http()
    }

    /// Returns `true` if messages of this legacy version may be sent in batches.
    ///
    /// > MCP implementations **MAY** support sending JSON-RPC batches, but **MUST** support receiving JSON-RPC batches.
    pub fn has_batches(&self) -> bool {
        *self == Self::V2025_03_26
    }

    /// Returns `true` if this legacy version has elicitation, so that a server can send a form.
    pub fn has_elicitation(&self) -> bool {
        matches!(self.as_str(), "2025-06-18" | "2025-11-25")
    }

    /// Returns `true` if elicitation of this legacy version has modes, and therefore URLs.
    pub fn has_elicitation_modes(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if forms of this legacy version may have fields with several choices.
    pub fn has_multiple_choice(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if sampling of this legacy version has tools, several blocks in one message, and a capability for
    /// the inclusion of context. Before, a server may request context from every client with sampling.
    pub fn has_sampling_tools(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if sessions of this legacy version have tasks: nested, with `ttl`, and `tasks/result` that blocks.
    pub fn has_tasks(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if event streams of this legacy version begin with an event that lets the client reconnect.
    ///
    /// > The server **SHOULD** immediately send an SSE event consisting of an event ID and an empty `data` field in order
    /// > to prime the client to reconnect
    pub fn has_priming_events(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns the version as written on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if these types implement this version.
    pub fn is_modern(&self) -> bool {
        Self::is_modern_text(&self.0)
    }

    /// Returns the result of [`is_modern`](Self::is_modern) for a text, without the creation of a version.
    pub fn is_modern_text(text: &str) -> bool {
        Self::MODERN.iter().any(|known| known.0 == text)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(&self.0).limit(SHOWN).fmt(f)
    }
}

impl fmt::Debug for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(&self.0).limit(SHOWN).fmt(f)
    }
}
