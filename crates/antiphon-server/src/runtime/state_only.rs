//! Which clients can take a result that holds state only.

use antiphon_wire::Implementation;
use serde_json::value::RawValue;
use std::fmt;

/// Clients that show such a result as a failure, and never come back with its state. By the name that they give in
/// `clientInfo`.
///
/// | name | seen | source |
/// |---|---|---|
/// | `Anthropic/ClaudeAI` (claude.ai) | September 2026 | github.com/anthropics/claude-ai-mcp, issue 1027 |
const CANNOT: &[&str] = &["Anthropic/ClaudeAI"];

/// Returns whether a client can take a result that holds state only, as far as is known: by a built-in table of clients
/// that cannot. At present these are `Anthropic/ClaudeAI` (claude.ai; github.com/anthropics/claude-ai-mcp, issue 1027).
///
/// > Servers **MAY** return an `InputRequiredResult` that contains only `requestState`
pub fn takes_state_only(client: Option<&Implementation>) -> bool {
    client.is_none_or(|client| !CANNOT.contains(&client.name.as_str()))
}

type Decides = dyn Fn(Option<&Implementation>) -> bool + Send + Sync;

/// Who decides which clients can.
pub(crate) struct StateOnly(Option<Box<Decides>>);

impl StateOnly {
    pub(crate) const BUILT_IN: Self = Self(None);

    pub(crate) fn decided_by(
        decides: impl Fn(Option<&Implementation>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Box::new(decides)))
    }

    /// Whether this client can. It is read only where it matters.
    pub(crate) fn permits(&self, client_info: Option<&RawValue>) -> bool {
        let client = client_info.and_then(|text| serde_json::from_str(text.get()).ok());
        match &self.0 {
            Some(decides) => decides(client.as_ref()),
            None => takes_state_only(client.as_ref()),
        }
    }
}

impl fmt::Debug for StateOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateOnly").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_ai_cannot_others_can() {
        for (name, can) in [("Anthropic/ClaudeAI", false), ("Anthropic", true), ("inspector", true)] {
            assert_eq!(takes_state_only(Some(&Implementation::new(name, "1"))), can, "{name}");
        }
        assert!(takes_state_only(None));
    }
}
