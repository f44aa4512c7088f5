//! Batches: several messages in one POST. Only 2025-03-26 has them.

use crate::{
    identity::caller::Caller,
    outbox::Outbox,
    serve::batch::read,
    server::message_service::{MessageService, MessageSession as _},
};
use antiphon_wire::{ErrorObject, Incoming, ProtocolVersion, write_error};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use serde_json::value::RawValue;

/// Passes on the notifications and responses of a batch. Returns whether the batch holds a request.
///
/// # Errors
/// The error to answer the whole batch with.
pub(crate) fn receive_unanswered(
    body: &[u8],
    mut receive: impl FnMut(Incoming<'_>),
) -> Result<bool, ErrorObject> {
    let mut has_request = false;
    for message in read(body)? {
        match Incoming::parse(message.get().as_bytes()) {
            Ok(Incoming::Request(_)) | Err(_) => has_request = true,
            Ok(message) => receive(message),
        }
    }
    Ok(has_request)
}

/// The part that answers the requests of a batch.
pub(crate) enum BatchService<'a, S: MessageService> {
    Session(&'a S::Session),
    /// A server, for requests of this version that belong to no session.
    Server(&'a S, &'a ProtocolVersion),
}

impl<S: MessageService> BatchService<'_, S> {
    /// Answers one message, if it is a request; `None` if it is none, or was cancelled.
    async fn answer(&self, message: &RawValue, caller: &Caller<'_>) -> Option<Vec<u8>> {
        let request = match Incoming::parse(message.get().as_bytes()) {
            Ok(Incoming::Request(request)) => request,
            Ok(_) => return None,
            Err(unreadable) => return Some(write_error(unreadable.id.as_ref(), &unreadable.error)),
        };
        // An outbox each: a request that is cancelled drops its own messages.
        let outbox = caller.outbox.map(Outbox::for_another);
        let caller = Caller { outbox: outbox.as_ref(), ..*caller };
        match self {
            Self::Session(session) => Some(session.call(request, &caller).await?.body),
            Self::Server(server, version) => {
                let version = ProtocolVersion::clone(version);
                Some(server.call_without_session(request, version, &caller).await.body)
            }
        }
    }

    /// Answers the requests of a batch concurrently. Returns an array of the responses in the order of the requests, or
    /// `None` if every request was cancelled.
    pub(crate) async fn answer_all(&self, body: &[u8], caller: &Caller<'_>) -> Option<Vec<u8>> {
        let messages = read(body).unwrap_or_default();
        let replies: Vec<BoxFuture<'_, Option<Vec<u8>>>> =
            messages.into_iter().map(|message| self.answer(message, caller).boxed()).collect();
        let replies: Vec<Vec<u8>> = join_all(replies).await.into_iter().flatten().collect();
        if replies.is_empty() {
            return None;
        }
        let mut array = b"[".to_vec();
        array.extend(replies.join(&b','));
        array.push(b']');
        Some(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::batch::{MAX_MESSAGES, is_batch};
    use proptest::prelude::*;

    proptest! {
        /// Any input is read or rejected, and no batch has more messages than allowed.
        #[test]
        fn any_bytes_are_a_batch_or_not(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            r#"[\[\]{},"a1: ]{0,200}"#.prop_map(String::into_bytes),
            prop::collection::vec(r#"1|\{"jsonrpc":"2.0","method":"m"\}"#, 0..80)
                .prop_map(|messages| format!("[{}]", messages.join(",")).into_bytes()),
        ]) {
            let mut heard = 0;
            let answered = receive_unanswered(&bytes, |_| heard += 1);
            prop_assert!(heard <= MAX_MESSAGES);
            prop_assert_eq!(answered.is_err(), read(&bytes).is_err());
            if let Ok(messages) = read(&bytes) {
                prop_assert!((1..=MAX_MESSAGES).contains(&messages.len()) && is_batch(&bytes));
            }
        }
    }
}
