//! The futures that a handler awaits: questions, steps, selects, checkpoints.

pub(crate) mod checkpoint;
pub(crate) mod elicit;
pub(crate) mod elicit_url;
pub(crate) mod environment;
pub(crate) mod raw_ask;
pub(crate) mod sample;
pub(crate) mod select;
pub(crate) mod step;
pub(crate) mod url_ref;

pub use checkpoint::{Checkpoint, IntoTask};
pub use elicit::{Elicit, ElicitOutcome};
pub use elicit_url::{ElicitUrl, ElicitUrlOutcome};
pub use environment::Scope;
pub(crate) use raw_ask::check_elicit;
pub use sample::{Roots, Sample};
pub use select::{Branches, JoinAll, Spawned, Winner};
pub use step::{Attempt, InTransaction, Retry, Step};
pub use url_ref::{IntoDone, UrlRef, UrlRefError, VerifiedUrlRef};
