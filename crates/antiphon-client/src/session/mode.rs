//! The revisions of the protocol that a client uses with its server.

use antiphon_wire::ProtocolVersion;

/// The revisions of the protocol that a client uses with its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The newest revision that the server supports. Over HTTP the first request is a modern one, and its reply decides; on
    /// other transports `server/discover` is sent first.
    #[default]
    Auto,
    /// A session of the newest version before 2026-07-28 that the server supports.
    Legacy,
    /// Exactly this version, modern or legacy.
    Pinned(ProtocolVersion),
}

/// The two ways in which servers convey version and capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// The version is in each request: 2026-07-28.
    Modern,
    /// The version is agreed on once, in the `initialize` handshake of a session: up to 2025-11-25.
    Legacy,
}

impl Mode {
    /// Returns `true` if the first request detects the era of the server. `has_sessions`: the transport has sessions.
    pub(crate) fn detects(&self, has_sessions: bool) -> bool {
        match self {
            Self::Auto => has_sessions,
            Self::Legacy => true,
            Self::Pinned(version) => version.is_legacy(),
        }
    }

    /// The version that `initialize` offers, and `true` if the server must choose that one. None if no session may be
    /// opened.
    pub(crate) fn offers(&self) -> Option<(ProtocolVersion, bool)> {
        match self {
            Self::Auto | Self::Legacy => Some((ProtocolVersion::LEGACY[0].clone(), false)),
            Self::Pinned(version) if version.is_legacy() => Some((version.clone(), true)),
            Self::Pinned(_) => None,
        }
    }
}
