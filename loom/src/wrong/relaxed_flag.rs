//! The source, with a flag that orders nothing.

use crate::real::stand_ins;

#[path = "../../../crates/antiphon-engine/src/wake_tracker.rs"]
#[expect(unreachable_pub, reason = "its crate gives it to others")]
mod wake_tracker;

stand_ins!(arc: crate::counted::Arc<T>, release: Relaxed, acquire: Relaxed);
