//! Calls that fail: one table row each.

use super::{Fake, Reply, asking, builder, chain, form};
use antiphon::client::{ClientBuilder, ClientError};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

pub(crate) const SECRET: &str = "s3cret";

pub(crate) fn forms() -> ClientBuilder {
    builder().on_elicit_form(async |ask| Ok(ask.accept(json!({"region": "eu"}))?))
}

pub(crate) fn one_form() -> Reply {
    asking(json!({"where": form()}), Some(SECRET))
}

/// The expected error of a call.
#[derive(Default)]
pub(crate) struct Expected<'a> {
    /// Parts of its text, causes included.
    pub(crate) texts: &'a [&'a str],
    /// The number of requests.
    pub(crate) sent: usize,
    /// The pending call: its round, and the keys that are answered.
    pub(crate) pending: Option<(u32, &'a [&'a str])>,
    /// A condition on the error.
    pub(crate) is: Option<fn(&ClientError) -> bool>,
}

pub(crate) async fn check(client: ClientBuilder, replies: Vec<Reply>, expected: Expected<'_>) -> ClientError {
    let fake = Fake::script(replies);
    let error = fake.client(client).call_tool("provision", json!({"name": "orders"})).await.unwrap_err();
    let text = chain(&error);
    for part in expected.texts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    assert!(text.starts_with("tools/call `provision` at fake:server: "), "{text}");
    assert!(!format!("{text} {error:?}").contains(SECRET), "{error:?}");
    assert_eq!(fake.requests().len(), expected.sent, "{text}");
    let pending = error.pending().map(|pending| {
        (pending.round(), pending.answers().iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>())
    });
    let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    assert_eq!(pending, expected.pending.map(|(round, keys)| (round, owned(keys))), "{text}");
    assert!(expected.is.is_none_or(|is| is(&error)), "{text}");
    error
}

/// Counts when it is dropped.
pub(crate) struct Guard(pub(crate) Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
