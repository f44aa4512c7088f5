//! The source, with references whose drop orders nothing.

use crate::real::stand_ins;

#[path = "../../../crates/antiphon/src/server/round/tracker.rs"]
mod tracker;

stand_ins!(arc: crate::counted::Arc<T, crate::counted::Forgetting>, release: Release, acquire: Acquire);
