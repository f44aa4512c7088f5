//! A request on its way to a handler: its members are read, then its state is opened and checked.

pub(crate) mod admit;
pub(crate) mod receive;
