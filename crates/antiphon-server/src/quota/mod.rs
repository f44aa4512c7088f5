//! The quotas of a server, which limit all callers together and each of them.

pub(crate) mod permit;
pub(crate) mod request_budget;

pub(crate) use permit::{Exceeded, Quota, QuotaExceeded, QuotaLimits, QuotaPermit};
