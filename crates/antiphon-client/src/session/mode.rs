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

    /// The versions that may be used. `has_sessions`: the transport has sessions.
    pub(crate) fn versions(&self, has_sessions: bool) -> Vec<ProtocolVersion> {
        let (modern, legacy) = match self {
            Self::Auto if has_sessions => (ProtocolVersion::MODERN, ProtocolVersion::LEGACY),
            Self::Auto => (ProtocolVersion::MODERN, &[][..]),
            Self::Legacy => (&[][..], ProtocolVersion::LEGACY),
            Self::Pinned(version) => (std::slice::from_ref(version), &[][..]),
        };
        [modern, legacy].concat()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::fault::RequestFault;

    #[test]
    fn a_missing_common_version_is_told_with_the_versions_of_the_mode() {
        let legacy = "2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05";
        let pinned = |version: &'static str| Mode::Pinned(ProtocolVersion::new(version));
        let hint = "; with the mode `auto`, this client speaks 2026-07-28";
        for (mode, has_sessions, theirs, expected) in [
            (Mode::Legacy, true, "2026-07-28", format!("{legacy}, the server 2026-07-28{hint}")),
            (pinned("2025-06-18"), true, "2026-07-28", format!("2025-06-18, the server 2026-07-28{hint}")),
            (pinned("2024-11-05"), true, "2025-03-26", "2024-11-05, the server 2025-03-26".to_owned()),
            (pinned("2026-07-28"), true, "2025-11-25", "2026-07-28, the server 2025-11-25".to_owned()),
            (Mode::Auto, true, "2024-10-07", format!("2026-07-28, {legacy}, the server 2024-10-07")),
            (Mode::Auto, false, "2025-11-25", "2026-07-28, the server 2025-11-25".to_owned()),
        ] {
            let fault = RequestFault::no_version(vec![theirs.to_owned()]);
            let text = fault.with_own_versions(&mode.versions(has_sessions)).to_string();
            assert_eq!(
                text,
                format!("no common protocol version: this client speaks {expected}"),
                "{mode:?}"
            );
        }
    }
}
