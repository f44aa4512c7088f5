//! What the tracker is made of: the standard library's, and what makes a waker of a [`Track`].
//!
//! The model in the workspace `loom` compiles `tracker.rs` with stand-ins of the same names, which try every order in
//! which the threads can run.

pub(super) use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use super::tracker::Track;
use std::task::Wake;

impl Wake for Track {
    fn wake(self: Arc<Self>) {
        self.hear();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.hear();
    }
}

/// The waker that, with each clone of it, keeps one reference to the track.
pub(super) fn waker_of(track: Arc<Track>) -> Waker {
    Waker::from(track)
}
