//! Batches: several messages in one JSON array. Only 2025-03-26 has them. On pipes each message is answered when it
//! is done, because the client finds its answers by their ids; over HTTP the answers are one array.

use antiphon_wire::ErrorObject;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// The maximum number of messages in a batch.
pub(crate) const MAX_MESSAGES: usize = 64;

/// The messages of a batch, as JSON text.
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

/// Returns whether the body is an array, if it is JSON at all.
pub(crate) fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

/// Reads the messages of a batch.
///
/// # Errors
/// The error to answer the whole batch with.
pub(crate) fn read(body: &[u8]) -> Result<Vec<&RawValue>, ErrorObject> {
    let Batch(messages) = serde_json::from_slice(body)
        .map_err(|fault| ErrorObject::invalid_request(format!("not a batch: {fault}")))?;
    if messages.is_empty() {
        return Err(ErrorObject::invalid_request("a batch holds one message or more"));
    }
    Ok(messages)
}
