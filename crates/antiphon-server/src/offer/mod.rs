//! The offers of a server: tools, prompts, resources and templates, their lists, and the completion of their arguments.

pub(crate) mod check;
pub(crate) mod completion;
pub(crate) mod given;
pub(crate) mod list;
pub(crate) mod offers;
pub(crate) mod per_caller;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod tool;
pub(crate) mod tool_checks;
pub(crate) mod uri;

use crate::{errors::BuildError, extension::registry::Extensions};
use antiphon_wire::{CacheScope, Meta, Ttl};
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;

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
    /// The extensions, that for tasks among them.
    pub(crate) extensions: Extensions,
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

/// The cache lifetime and scope of a result. Default: no caching, `ttlMs` 0 and `private`.
///
/// It is only a hint: a list may change before that time is over.
///
/// > Servers MUST be aware that responses with a `"public"` `cacheScope` may be shared between callers even if the
/// > Result is coming from an authenticated endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheHint {
    pub(crate) ttl: Ttl,
    pub(crate) scope: CacheScope,
}

impl CacheHint {
    /// Allows caching for everyone: the result is the same for all callers. Fractions of a millisecond are dropped.
    pub fn public(ttl: Duration) -> Self {
        Self { ttl: in_millis(ttl), scope: CacheScope::Public }
    }

    /// Allows caching for the caller only. Fractions of a millisecond are dropped.
    pub fn private(ttl: Duration) -> Self {
        Self { ttl: in_millis(ttl), scope: CacheScope::Private }
    }
}

/// > Servers **MUST** provide a `ttlMs` value that is `>= 0`.
///
/// The maximum is the largest integer that every client can read: 2^53 - 1, some 285,000 years.
fn in_millis(time: Duration) -> Ttl {
    const MOST: u64 = (1 << 53) - 1;
    Ttl(u64::try_from(time.as_millis()).unwrap_or(MOST).min(MOST))
}
