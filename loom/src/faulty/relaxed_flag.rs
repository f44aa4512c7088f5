//! The tracker's source, with a relaxed ordering for the flag.

use crate::real_tracker::replacements;

#[path = "../../../crates/antiphon-engine/src/wake_tracker.rs"]
#[expect(unreachable_pub, reason = "its crate exports it")]
mod wake_tracker;

replacements!(arc: crate::counted_arc::Arc<T>, release: Relaxed, acquire: Relaxed);
