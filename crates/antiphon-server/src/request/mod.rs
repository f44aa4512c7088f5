//! A request before its handler: its members are read, then its state is opened and checked.

pub(crate) mod admit;
pub(crate) mod carrier;
pub(crate) mod info;
pub(crate) mod receive;
mod spill;
pub(crate) mod task_form;
pub(crate) mod trace;
