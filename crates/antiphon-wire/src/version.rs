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

    /// Returns `true` if results of tools of this legacy version have structured content, which is an object.
    ///
    /// > [2025-06-18] **Structured** content is returned as a JSON object in the `structuredContent` field of a result.
    pub fn has_structured_content(&self) -> bool {
        matches!(self.as_str(), "2025-06-18" | "2025-11-25")
    }

    /// Returns `true` if tools of this legacy version have output schemas, which are those of objects.
    ///
    /// > [2025-06-18] Tools may also provide an output schema for validation of structured results.
    pub fn has_output_schemas(&self) -> bool {
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

    /// Returns `true` if requests for elicitation of this legacy version name their mode.
    ///
    /// > [2025-11-25] Elicitation supports two modes
    pub fn has_elicitation_modes(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if a server of this legacy version can send a URL to open.
    ///
    /// > [2025-11-25] URL mode elicitation requests **MUST** specify `mode: "url"`
    pub fn has_url_elicitation(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if this legacy version has the error `-32042`, which names URLs to open before the request is sent again.
    ///
    /// > [2025-11-25] When a request cannot be processed until an elicitation is completed, the server **MAY** return a
    /// > `URLElicitationRequiredError` (code `-32042`)
    pub fn has_url_required_error(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if forms of this legacy version have the title of a choice beside its value, in `oneOf`. Before, titles
    /// are in `enumNames`.
    ///
    /// > [2025-11-25] Single-select enum (with titles)
    pub fn has_titled_choices(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if forms of this legacy version may have fields with several choices.
    ///
    /// > [2025-11-25] Multi-select enum (without titles)
    pub fn has_multiple_choice(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if sampling of this legacy version has tools.
    ///
    /// > [2025-11-25] Servers can request that the client's LLM use tools during sampling
    pub fn has_sampling_tools(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if a message for sampling of this legacy version may have a list of blocks as its content. Before, the
    /// content is one block.
    ///
    /// > [2025-11-25, schema] `content: SamplingMessageContentBlock | SamplingMessageContentBlock[]`
    pub fn has_sampling_lists(&self) -> bool {
        *self == Self::V2025_11_25
    }

    /// Returns `true` if this legacy version has a capability for the inclusion of context in sampling. Before, a server may
    /// request context from every client with sampling.
    ///
    /// > [2025-11-25] Servers [...] **SHOULD NOT** use them unless the client declares `sampling.context` capability.
    pub fn has_context_capability(&self) -> bool {
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

    /// Returns `true` if a server of this legacy version may close the connection of a call, whose client then resumes the
    /// event stream.
    ///
    /// > [2025-11-25] the server **MAY** close the _connection_ (without terminating the _SSE stream_) at any time in order to
    /// > avoid holding a long-lived connection.
    pub fn has_resumable_calls(&self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A predicate of the table.
    type Has = fn(&ProtocolVersion) -> bool;

    #[test]
    fn each_feature_has_its_versions() {
        type V = ProtocolVersion;
        let from_2025_03 = [V::V2025_11_25, V::V2025_06_18, V::V2025_03_26];
        let (from_2025_06, only_2025_11) = (&from_2025_03[..2], &from_2025_03[..1]);
        let table: [(&str, Has, &[V]); 20] = [
            ("legacy", V::is_legacy, V::LEGACY),
            ("streamable_http", V::has_streamable_http, &from_2025_03),
            ("audio", V::has_audio, &from_2025_03),
            ("batches", V::has_batches, &[V::V2025_03_26]),
            ("version_header", V::has_version_header, from_2025_06),
            ("structured_content", V::has_structured_content, from_2025_06),
            ("output_schemas", V::has_output_schemas, from_2025_06),
            ("resource_links", V::has_resource_links, from_2025_06),
            ("elicitation", V::has_elicitation, from_2025_06),
            ("elicitation_modes", V::has_elicitation_modes, only_2025_11),
            ("url_elicitation", V::has_url_elicitation, only_2025_11),
            ("url_required_error", V::has_url_required_error, only_2025_11),
            ("titled_choices", V::has_titled_choices, only_2025_11),
            ("multiple_choice", V::has_multiple_choice, only_2025_11),
            ("sampling_tools", V::has_sampling_tools, only_2025_11),
            ("sampling_lists", V::has_sampling_lists, only_2025_11),
            ("context_capability", V::has_context_capability, only_2025_11),
            ("tasks", V::has_tasks, only_2025_11),
            ("priming_events", V::has_priming_events, only_2025_11),
            ("resumable_calls", V::has_resumable_calls, only_2025_11),
        ];
        for (name, has, versions) in table {
            for version in V::LEGACY.iter().chain(V::MODERN).chain([&V::new("2099-01-01")]) {
                assert_eq!(has(version), versions.contains(version), "{name} {version}");
            }
        }
    }
}
