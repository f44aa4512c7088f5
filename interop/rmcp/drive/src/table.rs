//! The table of the table driver, with the members that only this program reads.

use serde_json::Value;
use std::error::Error;

/// The calls, and the server's name and tools.
pub(crate) struct Table {
    pub(crate) cases: Vec<Case>,
    pub(crate) lists: Value,
    /// Cases that the peer does not support, with the reason.
    pub(crate) unsupported: Vec<(String, String)>,
}

/// One call.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) note: String,
    pub(crate) members: Value,
}

impl Table {
    pub(crate) fn read(text: &str) -> Result<Self, Box<dyn Error>> {
        let mut table: Value = serde_json::from_str(text)?;
        let cases = table["cases"].as_array().ok_or("the table has no cases")?.iter().map(Case::of).collect();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let unsupported = table["unsupported"].as_array().into_iter().flatten();
        let unsupported = unsupported.map(|one| (text(&one["id"]), text(&one["why"]))).collect();
        Ok(Self { cases, unsupported, lists: table["lists"].take() })
    }
}

impl Case {
    fn of(members: &Value) -> Self {
        let text = |name: &str| members[name].as_str().unwrap_or_default().to_owned();
        Self { id: text("id"), note: text("note"), members: members.clone() }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.members[name].as_str().unwrap_or_default()
    }

    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.members[name].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// The case needs something that antiphon does not support yet.
    pub(crate) fn is_postponed(&self) -> bool {
        self.members.get("later").is_some() && !self.is_cli_only()
    }

    /// The case is for `antiphon` only, because the table driver cannot express its outcome.
    pub(crate) fn is_cli_only(&self) -> bool {
        self.members["cli_alone"] == true
    }
}
