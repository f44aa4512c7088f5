//! The tracker's source, with the counted reference in the orderings of the standard library. Two modules of `faulty`
//! differ from it in one ordering each.

use crate::real_tracker::replacements;

#[path = "../../crates/antiphon-engine/src/wake_tracker.rs"]
#[expect(unreachable_pub, reason = "its crate exports it")]
mod wake_tracker;

replacements!(arc: crate::counted_arc::Arc<T>, release: Release, acquire: Acquire);
