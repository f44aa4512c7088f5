#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
