//! `subscriptions/listen`: a stream of changes that stays open.

pub(crate) mod event;
pub(crate) mod inbox;
pub(crate) mod modern;
pub(crate) mod on_session;
pub(crate) mod reconnect;
pub(crate) mod subscription;
