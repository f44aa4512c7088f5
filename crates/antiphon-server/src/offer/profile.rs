//! The constant data about a server that lists and discovery repeat.

use crate::{errors::build_error::BuildError, offer::cache::CacheHint};
use antiphon_wire::Meta;
use serde::Serialize;
use serde_json::value::RawValue;

/// The constant data about a server.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) instructions: Option<String>,
    /// The `_meta` of every result, as JSON text.
    pub(crate) server_info: Box<RawValue>,
    /// The `_meta` of every result, as members.
    pub(crate) server_info_members: Meta,
    pub(crate) list_changed: bool,
    pub(crate) resource_updates: bool,
    pub(crate) logging: bool,
    /// True if calls may become tasks.
    pub(crate) tasks: bool,
    /// The number of entries on a page, at least 1; `None` puts all of them on one page.
    pub(crate) page_size: Option<usize>,
    pub(crate) cache: CacheHint,
}

impl Profile {
    /// Returns the name of a list for its cursors: the server's name and the list's member.
    pub(crate) fn cursors_of(&self, member: &str) -> String {
        format!("{} {member}", self.name)
    }
}

/// Writes a value as raw JSON.
///
/// # Errors
/// If the value cannot be written as JSON.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, BuildError> {
    serde_json::value::to_raw_value(value).map_err(|fault| BuildError(fault.to_string()))
}
