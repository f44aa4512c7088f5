//! The store in Redis or Valkey, for all instances.

mod changes;
mod link;
mod store;

#[cfg(feature = "testing")]
mod test_clock;

pub use link::RedisOptions;
pub use store::RedisStore;
