//! Batches: several messages in one POST. Only 2025-03-26 has them.

use crate::server::{Caller, Outbox, Server, Session};
use antiphon_wire::{ErrorObject, Incoming, ProtocolVersion, write_error};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// How many messages one batch may hold.
const MAX_MESSAGES: usize = 64;

/// The texts of the messages.
struct Batch<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Batch<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Batch<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = sequence.next_element()? {
                    if messages.len() == MAX_MESSAGES {
                        return Err(A::Error::custom(format_args!(
                            "a batch may hold {MAX_MESSAGES} messages"
                        )));
                    }
                    messages.push(message);
                }
                Ok(Batch(messages))
            }
        }
        deserializer.deserialize_seq(Messages)
    }
}

/// Whether this is a batch, if it is JSON at all.
pub(super) fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

/// Reads the messages of a batch.
///
/// # Errors
/// What to answer in the place of all of them.
fn read(body: &[u8]) -> Result<Vec<&RawValue>, ErrorObject> {
    let Batch(messages) = serde_json::from_slice(body)
        .map_err(|fault| ErrorObject::invalid_request(format!("not a batch: {fault}")))?;
    if messages.is_empty() {
        return Err(ErrorObject::invalid_request("a batch holds one message or more"));
    }
    Ok(messages)
}

/// Takes notice of what needs no answer. Whether there is something to be answered.
///
/// # Errors
/// What to answer in the place of all of them.
pub(super) fn hear(body: &[u8], mut heard: impl FnMut(Incoming<'_>)) -> Result<bool, ErrorObject> {
    let mut is_answered = false;
    for message in read(body)? {
        match Incoming::parse(message.get().as_bytes()) {
            Ok(Incoming::Request(_)) | Err(_) => is_answered = true,
            Ok(told) => heard(told),
        }
    }
    Ok(is_answered)
}

/// Who answers the requests of a batch.
pub(super) enum Answering<'a> {
    Session(&'a Session),
    /// A server, to requests of no session that are of this version.
    Server(&'a Server, &'a ProtocolVersion),
}

impl Answering<'_> {
    /// Answers one message, if it is a request; `None` if it is none, or was cancelled.
    async fn answer(&self, message: &RawValue, caller: &Caller<'_>) -> Option<Vec<u8>> {
        let request = match Incoming::parse(message.get().as_bytes()) {
            Ok(Incoming::Request(request)) => request,
            Ok(_) => return None,
            Err(unreadable) => return Some(write_error(unreadable.id.as_ref(), &unreadable.error)),
        };
        // What one of them has left is found again when it is cancelled.
        let outbox = caller.outbox.map(Outbox::for_another);
        let caller = Caller { outbox: outbox.as_ref(), ..*caller };
        match self {
            Self::Session(session) => Some(session.answer(request, &caller).await?.body),
            Self::Server(server, version) => {
                let version = ProtocolVersion::clone(version);
                Some(server.answer_without_session(request, version, &caller).await.body)
            }
        }
    }

    /// Answers the requests of a batch, side by side: an array of the responses, in the order of the requests. `None`
    /// if there is none, because all were cancelled.
    pub(super) async fn answer_all(&self, body: &[u8], caller: &Caller<'_>) -> Option<Vec<u8>> {
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
    use proptest::prelude::*;

    proptest! {
        /// Whatever comes, it is read or refused, and never more than a batch may hold.
        #[test]
        fn any_bytes_are_a_batch_or_not(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            r#"[\[\]{},"a1: ]{0,200}"#.prop_map(String::into_bytes),
            prop::collection::vec(r#"1|\{"jsonrpc":"2.0","method":"m"\}"#, 0..80)
                .prop_map(|messages| format!("[{}]", messages.join(",")).into_bytes()),
        ]) {
            let mut heard = 0;
            let answered = hear(&bytes, |_| heard += 1);
            prop_assert!(heard <= MAX_MESSAGES);
            prop_assert_eq!(answered.is_err(), read(&bytes).is_err());
            if let Ok(messages) = read(&bytes) {
                prop_assert!((1..=MAX_MESSAGES).contains(&messages.len()) && is_batch(&bytes));
            }
        }
    }
}
