//! The source, with a flag that orders nothing.

use crate::real::stand_ins;

#[path = "../../../crates/antiphon/src/server/round/tracker.rs"]
mod tracker;

stand_ins!(arc: crate::counted::Arc<T>, release: Relaxed, acquire: Relaxed);
