//! The tracker itself, with references counted by hand in the standard library's orderings. The two in `wrong` that are
//! compiled from the source differ from it in one ordering each.

use crate::real::stand_ins;

#[path = "../../crates/antiphon-engine/src/wake_tracker.rs"]
#[expect(unreachable_pub, reason = "its crate gives it to others")]
mod wake_tracker;

stand_ins!(arc: crate::counted::Arc<T>, release: Release, acquire: Acquire);
