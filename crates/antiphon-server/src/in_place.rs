//! Boxes whose content is made in its place.

/// Returns a value in a box. The box is made before the value, so that the value can be made where it stays: `Box::new` copies
/// it there, which costs time if it is large. Most of a future, for example, is space for later.
pub(crate) fn boxed<T>(make: impl FnOnce() -> T) -> Box<T> {
    Box::write(Box::new_uninit(), make())
}
