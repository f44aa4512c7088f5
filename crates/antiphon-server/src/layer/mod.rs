//! Layers around every request: what they see, how a request passes through them, and those that the crate has.

#[cfg(feature = "layers")]
pub(crate) mod audit;
pub(crate) mod call;
#[cfg(feature = "layers")]
pub(crate) mod concurrency;
#[cfg(feature = "layers")]
pub(crate) mod rate_limit;
#[cfg(feature = "layers")]
pub(crate) mod result_cache;
pub(crate) mod run;
