//! The identity of a server: its target and its name.

use antiphon_wire::{Implementation, escaped, is_escaped};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The identity of a server: the target of requests, and the name that the server gave itself.
///
/// The name is self-reported. A program that asks a person should show both, as `Display` does.
///
/// > Clients **MUST** provide clear indication of which server is requesting information
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerIdentity {
    /// The target of requests: a URL, a command.
    pub target: String,
    /// The title or name in the server's results, without control characters and invisible ones; absent until a result has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ServerIdentity {
    pub(crate) fn new(target: &str, info: Option<&Implementation>) -> Self {
        let name = info.map(|info| info.display_name().chars().filter(|c| !is_escaped(*c)).collect());
        Self { target: target.to_owned(), name }
    }

    /// The name, or else the target.
    pub fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.target)
    }
}

impl fmt::Display for ServerIdentity {
    /// Writes name and target, escaped and cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} ({})", escaped(name), escaped(&self.target)),
            None => escaped(&self.target).fmt(f),
        }
    }
}
