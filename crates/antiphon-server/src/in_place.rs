//! Boxes whose content is made in its place.
//!
//! The future of a request is in three of them, of at most 1032 bytes each: for this size glibc's allocator still has a cache of each
//! thread.

/// Returns a value in a box. The box is made before the value, so that the value can be made where it stays: `Box::new` copies
/// it there, which costs time if it is large. Most of a future, for example, is space for later.
pub(crate) fn boxed<T>(make: impl FnOnce() -> T) -> Box<T> {
    Box::write(Box::new_uninit(), make())
}
