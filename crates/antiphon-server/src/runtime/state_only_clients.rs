//! Clients that accept a result that holds state only.

use antiphon_wire::Implementation;
use serde_json::value::RawValue;
use std::fmt;

/// The clients that show such a result as a failure, and do not come back with its state. The name is that of
/// `clientInfo`.
///
/// | name | seen | source |
/// |---|---|---|
/// | `Anthropic/ClaudeAI` (claude.ai) | September 2026 | github.com/anthropics/claude-ai-mcp, issue 1027 |
const CANNOT: &[&str] = &["Anthropic/ClaudeAI"];

/// Returns whether a client accepts a result that holds state only, by a built-in table of clients that do not. At
/// present the table contains `Anthropic/ClaudeAI` (claude.ai; github.com/anthropics/claude-ai-mcp, issue 1027).
///
/// > Servers **MAY** return an `InputRequiredResult` that contains only `requestState`
pub fn accepts_state_only(client: Option<&Implementation>) -> bool {
    client.is_none_or(|client| !CANNOT.contains(&client.name.as_str()))
}

type Decides = dyn Fn(Option<&Implementation>) -> bool + Send + Sync;

/// The rule that decides which clients accept such a result.
pub(crate) struct StateOnlyClients(Option<Box<Decides>>);

impl StateOnlyClients {
    pub(crate) const BUILT_IN: Self = Self(None);

    pub(crate) fn decided_by(
        decides: impl Fn(Option<&Implementation>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Box::new(decides)))
    }

    /// Returns whether this client does. The text is parsed only here.
    pub(crate) fn include(&self, client_info: Option<&RawValue>) -> bool {
        let client = client_info.and_then(|text| serde_json::from_str(text.get()).ok());
        match &self.0 {
            Some(decides) => decides(client.as_ref()),
            None => accepts_state_only(client.as_ref()),
        }
    }
}

impl fmt::Debug for StateOnlyClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateOnlyClients").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_ai_cannot_others_can() {
        for (name, can) in [("Anthropic/ClaudeAI", false), ("Anthropic", true), ("inspector", true)] {
            assert_eq!(accepts_state_only(Some(&Implementation::new(name, "1"))), can, "{name}");
        }
        assert!(accepts_state_only(None));
    }
}
