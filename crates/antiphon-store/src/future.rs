//! The future of a store's operation.

use std::future::Future;
use std::pin::Pin;

use crate::error::StoreError;

/// The future of a store's operation.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The future of an operation on tasks that cannot fail.
pub type TaskFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
