//! The connection to a server of either era, and the sessions of legacy servers.
//!
//! A [`Connection`](connection::Connection) sends requests (requests). Its first request detects the era (detect) from the
//! replies (verdict). A modern server receives every request with version and capabilities (connection). A legacy server has
//! a session (legacy), with a handshake, a task, and open asks of the server. The calls that became tasks of a modern server
//! wait for its reports over one subscription (task_stream, task_watch).

pub(crate) mod connection;
pub(crate) mod detect;
pub(crate) mod legacy;
pub(crate) mod requests;
pub(crate) mod server_asks;
pub(crate) mod shared;
pub(crate) mod task;
pub(crate) mod task_stream;
pub(crate) mod task_watch;
pub(crate) mod verdict;
