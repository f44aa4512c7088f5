//! The store in Redis or Valkey, for all instances.

mod error;
mod link;
mod options;
mod replies;
mod scripts;
mod store;

#[cfg(feature = "testing")]
mod test_clock;

pub use options::RedisOptions;
pub use store::RedisStore;
