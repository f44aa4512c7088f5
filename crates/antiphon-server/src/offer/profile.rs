//! The unchanging facts about a server that lists and discovery repeat.

use crate::{BuildError, CacheHint};
use antiphon_wire::Meta;
use serde::Serialize;
use serde_json::value::RawValue;

/// What a server says of itself that does not change.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) instructions: Option<String>,
    /// The `_meta` of every result, written.
    pub(crate) server_info: Box<RawValue>,
    /// The same, as members.
    pub(crate) server_info_members: Meta,
    pub(crate) list_changed: bool,
    pub(crate) resource_updates: bool,
    pub(crate) logging: bool,
    /// At least 1; all on one page without.
    pub(crate) page_size: Option<usize>,
    pub(crate) cache: CacheHint,
}

impl Profile {
    /// The list that a cursor belongs to: the server's name and the list's member.
    pub(crate) fn cursors_of(&self, member: &str) -> String {
        format!("{} {member}", self.name)
    }
}

/// Writes a value as raw JSON.
///
/// # Errors
/// If the value has no JSON.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, BuildError> {
    serde_json::value::to_raw_value(value).map_err(|fault| BuildError(fault.to_string()))
}
