//! A reference count like the one of the standard library, on loom's atomics, with orderings that a model can choose.
//! loom's own `Arc` has fixed orderings.

use loom::sync::atomic::{
    AtomicUsize,
    Ordering::{self, Acquire, Relaxed, Release},
    fence,
};
use std::{marker::PhantomData, ops::Deref};

/// The memory ordering of dropping a reference.
pub trait DropOrdering: Send + Sync + 'static {
    /// The ordering of the decrement.
    const DROP: Ordering;
}

/// The ordering of the standard library.
pub struct ReleaseDrop;

impl DropOrdering for ReleaseDrop {
    const DROP: Ordering = Release;
}

/// An ordering that is too weak: a thread that finds no other reference may miss what was written before the drop.
pub struct RelaxedDrop;

impl DropOrdering for RelaxedDrop {
    const DROP: Ordering = Relaxed;
}

/// A shared reference with its own count. A real `Arc`, which the model does not see, frees the storage.
pub struct Arc<T, D: DropOrdering = ReleaseDrop> {
    shared: std::sync::Arc<Shared<T>>,
    ordering: PhantomData<D>,
}

struct Shared<T> {
    strong: AtomicUsize,
    /// The count of weak references. It is `usize::MAX` while `get_mut` reads `strong`. Weak references are never
    /// created.
    weak: AtomicUsize,
    value: T,
}

impl<T, D: DropOrdering> Arc<T, D> {
    /// Creates a value with one reference.
    pub fn new(value: T) -> Self {
        let shared = Shared { strong: AtomicUsize::new(1), weak: AtomicUsize::new(1), value };
        Self { shared: std::sync::Arc::new(shared), ordering: PhantomData }
    }

    /// Returns the value, if this is the only reference.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        let shared = &this.shared;
        shared.weak.compare_exchange(1, usize::MAX, Acquire, Relaxed).ok()?;
        let alone = shared.strong.load(Acquire) == 1;
        shared.weak.store(1, Release);
        if !alone {
            return None;
        }
        let shared = std::sync::Arc::get_mut(&mut this.shared).expect("both counts are equal");
        Some(&mut shared.value)
    }
}

impl<T, D: DropOrdering> Clone for Arc<T, D> {
    fn clone(&self) -> Self {
        self.shared.strong.fetch_add(1, Relaxed);
        Self { shared: std::sync::Arc::clone(&self.shared), ordering: PhantomData }
    }
}

impl<T, D: DropOrdering> Deref for Arc<T, D> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.shared.value
    }
}

impl<T, D: DropOrdering> Drop for Arc<T, D> {
    fn drop(&mut self) {
        if self.shared.strong.fetch_sub(1, D::DROP) == 1 {
            fence(Acquire);
        }
    }
}
