//! Boxes: for values that are made in their place, and for futures that few requests need.
//!
//! The future of a request is in three of them, of at most 1032 bytes each: for this size glibc's allocator still has a cache of each
//! thread.

use std::pin::Pin;

/// Returns a future in a box of its own, for a part that not every request needs, or not for all of its time: inside of the future of
/// the request, it would enlarge that of every call.
pub(crate) fn rare<F: Future>(future: F) -> Pin<Box<F>> {
    Box::pin(future)
}

/// Returns a value in a box. The box is made before the value, so that the value can be made where it stays: `Box::new` copies
/// it there, which costs time if it is large. Most of a future, for example, is space for later.
pub(crate) fn boxed<T>(make: impl FnOnce() -> T) -> Box<T> {
    Box::write(Box::new_uninit(), make())
}
