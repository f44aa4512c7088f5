//! Buffers for large request bodies, which are used again.
//!
//! An allocator gives a freed megabyte back to the system, and the next one costs a page fault for each of its pages: more
//! time than reading and decoding the body.

use std::{
    mem,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The length from which a body is read into a buffer of the pool.
pub(crate) const LARGE: usize = 64 * 1024;

/// The maximum number of buffers that wait for a body: as many as a few processors use at a time.
const BUFFERS: usize = 4;

/// The maximum capacity of a buffer that is kept.
const CAPACITY: usize = 2 * 1024 * 1024;

/// The free buffers of one endpoint: at most 8 MiB.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferPool(Arc<Mutex<Vec<Vec<u8>>>>);

impl BufferPool {
    /// Moves bytes to a buffer of the pool, or to a new one if none is free.
    pub(crate) fn adopt(&self, bytes: &[u8]) -> PooledBuffer {
        let mut buffer = self.free().pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        PooledBuffer { buffer, pool: self.clone() }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer that returns to its pool when it is dropped.
#[derive(Debug)]
pub(crate) struct PooledBuffer {
    buffer: Vec<u8>,
    pool: BufferPool,
}

impl PooledBuffer {
    /// Appends bytes. A buffer that is too small gets this capacity, and no more.
    pub(crate) fn append(&mut self, bytes: &[u8], capacity: usize) {
        if self.buffer.capacity() - self.buffer.len() < bytes.len() {
            let capacity = capacity.max(self.buffer.len() + bytes.len());
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
        self.buffer.extend_from_slice(bytes);
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let mut buffer = mem::take(&mut self.buffer);
        buffer.clear();
        if (LARGE..=CAPACITY).contains(&buffer.capacity()) {
            let mut free = self.pool.free();
            if free.len() < BUFFERS {
                free.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_is_empty() {
        let pool = BufferPool::default();
        let mut body = pool.adopt(b"first");
        body.append(&[1; LARGE], LARGE + 100);
        assert_eq!((&body[..5], body.len(), body.buffer.capacity()), (&b"first"[..], LARGE + 5, LARGE + 100));
        let place = body.buffer.as_ptr();
        drop(body);
        let body = pool.adopt(b"second");
        assert_eq!((&*body, body.buffer.as_ptr()), (&b"second"[..], place));
    }

    /// The pool keeps few buffers, and neither small nor huge ones.
    #[test]
    fn the_pool_is_bounded() {
        let pool = BufferPool::default();
        let used = |length: usize| {
            let mut body = pool.adopt(b"");
            body.append(&vec![0; length], 0);
            body
        };
        drop([used(LARGE - 1), used(CAPACITY + 1)]);
        assert_eq!(pool.free().len(), 0);
        drop((0..2 * BUFFERS).map(|_| used(LARGE)).collect::<Vec<_>>());
        assert_eq!(pool.free().len(), BUFFERS);
    }
}
