//! The stamp: every result says who answers.

use antiphon_wire::{CallToolResult, GetPromptResult, Meta, ReadResourceResult, meta_keys};

/// A result with room for `_meta`.
pub(super) trait Stamped {
    fn meta_mut(&mut self) -> &mut Option<Meta>;
}

macro_rules! stamped {
    ($($result:ty)*) => { $(
        impl Stamped for $result {
            fn meta_mut(&mut self) -> &mut Option<Meta> {
                &mut self.meta
            }
        }
    )* };
}

stamped! { CallToolResult GetPromptResult ReadResourceResult }

/// > Servers **SHOULD** include the following `io.modelcontextprotocol/*` field in every result's `_meta`
///
/// What the handler wrote there itself stays.
pub(super) fn stamp(meta: &mut Option<Meta>, stamp: &Meta) {
    match meta {
        None => *meta = Some(stamp.clone()),
        Some(members) => {
            let own = members.0.get(meta_keys::SERVER_INFO).is_some_and(|info| !info.is_null());
            if !own {
                members.0.extend(stamp.0.clone());
            }
        }
    }
}
