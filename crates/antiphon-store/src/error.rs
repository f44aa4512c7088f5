//! Errors of stores. Each says whether anything was written.

use std::{error::Error, fmt, future::Future, pin::Pin};

/// The effect of a failed operation on the store.
///
/// The enum is exhaustive: the caller repeats the operation, or not, by each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Nothing was written.
    No,
    /// The store did not confirm the operation: it may or may not have been written.
    ///
    /// Every operation may be repeated: a repeated operation that was written before has the same result, except that
    /// [`append`](crate::CallStore::append) then returns the record as an existing one.
    Unknown,
}

/// The cause of an error, for the code that decides what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The fence is no longer the row's: another runner took the call over, the call went on, or the row expired.
    /// The runner stops and sends nothing. Nothing was written.
    FenceLost,
    /// The store has no room for another row or record. Nothing was lost.
    Full,
    /// The store did not accept the connection, closed it, or refused the operation for now.
    Unreachable,
    /// The store did not confirm the operation within its time limit.
    Timeout,
    /// The store returned a value that this version cannot read, or a blob with another digest.
    Corrupt,
    /// The tables or scripts in the store have another version than this program.
    Version,
    /// A setting of the store, or a value of the request, is wrong: an error of this program or of its operator.
    Invalid,
    /// Any other error of the store.
    Other,
}

/// An error of a store.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    written: Written,
    operation: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// Returns an error of `operation` with its cause. The cause may be a text.
    pub fn new(
        kind: StoreErrorKind,
        written: Written,
        operation: &'static str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { kind, written, operation, source: source.into() }
    }

    /// Returns an error after which the store is as before.
    pub fn read(
        kind: StoreErrorKind,
        operation: &'static str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::new(kind, Written::No, operation, source)
    }

    /// Returns the error of a runner whose fence is no longer the row's.
    #[must_use]
    pub fn fence_lost(operation: &'static str) -> Self {
        Self::read(
            StoreErrorKind::FenceLost,
            operation,
            "another run of this call holds it, or the call went on or expired",
        )
    }

    /// Returns the error with another effect on the store.
    #[must_use]
    pub fn with_written(mut self, written: Written) -> Self {
        self.written = written;
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns the effect of the failed operation on the store.
    #[must_use]
    pub fn written(&self) -> Written {
        self.written
    }

    /// Returns true if the runner lost its fence, and must stop without a reply.
    #[must_use]
    pub fn is_fence_lost(&self) -> bool {
        self.kind == StoreErrorKind::FenceLost
    }

    /// Returns true if the same operation may succeed later: the store is not reachable, slow or full.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unreachable | StoreErrorKind::Timeout | StoreErrorKind::Full)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match self.kind {
            StoreErrorKind::FenceLost => "the run lost its fence",
            StoreErrorKind::Full => "the store is full",
            StoreErrorKind::Unreachable => "the store is not reachable",
            StoreErrorKind::Timeout => "the store did not confirm in time",
            StoreErrorKind::Corrupt => "the store returned a wrong value",
            StoreErrorKind::Version => "the store has another version",
            StoreErrorKind::Invalid => "the store was used or configured wrongly",
            StoreErrorKind::Other => "the store failed",
        };
        let written = match self.written {
            Written::No => "nothing was written",
            Written::Unknown => "it is unknown whether anything was written",
        };
        write!(f, "{}: {cause}; {written}", self.operation)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.source.as_ref())
    }
}

/// The future of a store's operation.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The future of an operation on tasks that cannot fail.
pub type TaskFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
