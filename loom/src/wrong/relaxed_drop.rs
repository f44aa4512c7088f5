//! The source, with references whose drop orders nothing.

use crate::real::stand_ins;

#[path = "../../../crates/antiphon-engine/src/wake_tracker.rs"]
#[expect(unreachable_pub, reason = "its crate gives it to others")]
mod wake_tracker;

stand_ins!(arc: crate::counted::Arc<T, crate::counted::Forgetting>, release: Release, acquire: Acquire);
