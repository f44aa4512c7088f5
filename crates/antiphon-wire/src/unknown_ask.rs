//! Input requests that this version does not know or cannot read.

use crate::{members::Object, method};
use serde::Deserialize;
use serde_json::value::RawValue;

/// An input request of an unknown method, an elicitation of an unknown mode, or an input request that cannot be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnknownAsk {
    /// The method, as the server wrote it. Empty if no method can be read.
    pub method: String,
    /// The params, as the server wrote them.
    pub params: Option<Box<RawValue>>,
    unreadable: Option<Unreadable>,
}

/// An input request whose method or mode is known, and whose members are not those of its method.
#[derive(Clone, Debug)]
struct Unreadable {
    /// The whole input request, as the server wrote it.
    text: Box<RawValue>,
    reason: String,
}

impl UnknownAsk {
    /// Returns the mode, if the request is an elicitation.
    pub fn mode(&self) -> Option<String> {
        elicitation_mode(&self.method, self.params.as_deref())
    }

    /// Returns `true` if the request is an elicitation, of any mode: its answer may be to decline.
    pub fn is_elicitation(&self) -> bool {
        self.method == method::ELICITATION_CREATE
    }

    /// Returns the reason why the request cannot be read; `None` if its method or its mode is unknown. Contains text of the
    /// server: escape it.
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_ref().map(|unreadable| unreadable.reason.as_str())
    }

    /// Returns the input request, if its method or its mode is unknown.
    pub(crate) fn of(method: &str, params: Option<&RawValue>) -> Option<Self> {
        let is_unknown = match method {
            method::ELICITATION_CREATE => {
                elicitation_mode(method, params).is_some_and(|mode| !matches!(&*mode, "form" | "url"))
            }
            method::SAMPLING_CREATE_MESSAGE | method::ROOTS_LIST => false,
            _ => true,
        };
        let params = params.map(ToOwned::to_owned);
        is_unknown.then(|| Self { method: method.to_owned(), params, unreadable: None })
    }

    /// Returns the input request of this text, which cannot be read for this reason.
    pub(crate) fn of_unreadable(text: &RawValue, fault: &serde_json::Error) -> Self {
        #[derive(Default, Deserialize)]
        struct Parts<'a> {
            #[serde(borrow, default)]
            method: Option<&'a RawValue>,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        let Object(parts) = serde_json::from_str::<Object<Parts<'_>>>(text.get())
            .unwrap_or_else(|_| Object(Parts::default()));
        let method = parts.method.and_then(|method| serde_json::from_str(method.get()).ok());
        let unreadable = Some(Unreadable { text: text.to_owned(), reason: fault.to_string() });
        Self { method: method.unwrap_or_default(), params: parts.params.map(ToOwned::to_owned), unreadable }
    }

    /// Returns the text of an input request that cannot be read.
    pub(crate) fn unreadable_text(&self) -> Option<&RawValue> {
        self.unreadable.as_ref().map(|unreadable| &*unreadable.text)
    }
}

fn elicitation_mode(method: &str, params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Mode {
        mode: String,
    }
    let params = params.filter(|_| method == method::ELICITATION_CREATE)?;
    serde_json::from_str::<Object<Mode>>(params.get()).ok().map(|Object(params)| params.mode)
}
