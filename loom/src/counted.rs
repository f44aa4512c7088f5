//! A reference count as the standard library keeps it, on loom's atomics, so that its orderings can be chosen. loom's own
//! `Arc` has them built in.

use loom::sync::atomic::{
    AtomicUsize,
    Ordering::{self, Acquire, Relaxed, Release},
    fence,
};
use std::{marker::PhantomData, ops::Deref};

/// The memory orderings of the drop of a reference.
pub trait DropOrdering: Send + Sync + 'static {
    /// The ordering of the decrement.
    const DROP: Ordering;
}

/// As the standard library does.
pub struct Releasing;

impl DropOrdering for Releasing {
    const DROP: Ordering = Release;
}

/// Too weak: what was written before the drop may not be there for whoever finds himself alone.
pub struct Forgetting;

impl DropOrdering for Forgetting {
    const DROP: Ordering = Relaxed;
}

/// A shared reference, counted by hand. The storage is freed by a real `Arc`, which the model does not see.
pub struct Arc<T, D: DropOrdering = Releasing> {
    shared: std::sync::Arc<Shared<T>>,
    ordering: PhantomData<D>,
}

struct Shared<T> {
    strong: AtomicUsize,
    /// Locked, as `usize::MAX`, while somebody asks whether he is alone; nobody makes weak references here.
    weak: AtomicUsize,
    value: T,
}

impl<T, D: DropOrdering> Arc<T, D> {
    /// One reference to a new value.
    pub fn new(value: T) -> Self {
        let shared = Shared { strong: AtomicUsize::new(1), weak: AtomicUsize::new(1), value };
        Self { shared: std::sync::Arc::new(shared), ordering: PhantomData }
    }

    /// The value, if this is the only reference.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        let shared = &this.shared;
        shared.weak.compare_exchange(1, usize::MAX, Acquire, Relaxed).ok()?;
        let alone = shared.strong.load(Acquire) == 1;
        shared.weak.store(1, Release);
        if !alone {
            return None;
        }
        let shared = std::sync::Arc::get_mut(&mut this.shared).expect("both counts agree");
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
