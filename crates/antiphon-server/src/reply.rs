//! The stamp: every result says who answers.

use antiphon_wire::{CallToolResult, GetPromptResult, Meta, ReadResourceResult, meta_keys};
use serde::Serialize;
use serde_json::value::RawValue;

/// A result with room for `_meta`.
pub(crate) trait HasMeta {
    fn meta_mut(&mut self) -> &mut Option<Meta>;
}

macro_rules! has_meta {
    ($($result:ty)*) => { $(
        impl HasMeta for $result {
            fn meta_mut(&mut self) -> &mut Option<Meta> {
                &mut self.meta
            }
        }
    )* };
}

has_meta! { CallToolResult GetPromptResult ReadResourceResult }

/// Who answers: as members for results that have a `_meta` of their own, and written once for those that have none.
pub(crate) struct Stamp {
    pub(crate) members: Meta,
    pub(crate) written: Box<RawValue>,
}

/// A result without a `_meta` of its own, with the stamp for one.
#[derive(Serialize)]
pub(crate) struct Stamped<'a, T> {
    #[serde(flatten)]
    pub(crate) result: &'a T,
    #[serde(rename = "_meta")]
    pub(crate) stamp: &'a RawValue,
}

impl Stamp {
    /// > Servers **SHOULD** include the following `io.modelcontextprotocol/*` field in every result's `_meta`
    ///
    /// What the handler wrote there itself stays.
    pub(crate) fn join(&self, members: &mut Meta) {
        let own = members.0.get(meta_keys::SERVER_INFO).is_some_and(|info| !info.is_null());
        if !own {
            members.0.extend(self.members.0.clone());
        }
    }
}
