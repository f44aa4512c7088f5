//! Results that may be cached: of `server/discover`, with the caching hints that other results share, and of the four lists,
//! which differ in their entries only.

use crate::{Meta, ProtocolVersion, ServerCapabilities, lenient::or_default, tag::Complete};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The result of `server/discover`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The result type: always `complete`.
    #[serde(default, deserialize_with = "or_default")]
    pub result_type: Complete,
    /// The protocol versions that the server supports.
    pub supported_versions: Vec<ProtocolVersion>,
    /// The capabilities that the server offers.
    pub capabilities: ServerCapabilities,
    /// Instructions for a model on the use of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The time for which the result may be cached, in milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub ttl_ms: Ttl,
    /// The scope in which a cached result may be shared.
    #[serde(default, deserialize_with = "or_default")]
    pub cache_scope: CacheScope,
    /// Further metadata (`_meta`); contains the server's identity.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl DiscoverResult {
    /// Returns a result that must not be cached.
    pub fn new(supported_versions: Vec<ProtocolVersion>, capabilities: ServerCapabilities) -> Self {
        Self {
            result_type: Complete,
            supported_versions,
            capabilities,
            instructions: None,
            ttl_ms: Ttl::default(),
            cache_scope: CacheScope::default(),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// A time to live in milliseconds; 0, the default, means "do not cache". A negative or fractional value from
/// a peer is read as the nearest whole number from 0, a number in a text as that number, and any other text as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Ttl(pub u64);

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = match Value::deserialize(deserializer)? {
            Value::Number(number) => number,
            Value::String(text) => text.trim().parse().unwrap_or_else(|_| 0.into()),
            _ => return Err(de::Error::custom("expected a JSON number")),
        };
        // A float cast saturates: negative becomes 0.
        Ok(Self(number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as u64)))
    }
}

/// The scope in which a cached result may be shared. An unknown word is read as the narrower scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "Cow<'_, str>")]
pub enum CacheScope {
    /// A cached result may be shared with anybody.
    Public,
    /// A cached result is for the principal that sent the request only. The default.
    #[default]
    Private,
}

impl From<Cow<'_, str>> for CacheScope {
    fn from(word: Cow<'_, str>) -> Self {
        if word == "public" { Self::Public } else { Self::Private }
    }
}

/// Declares the result of a list: one page of entries.
macro_rules! list_result {
    ($(#[$doc:meta])* $name:ident { $(#[$entries_doc:meta])* $entries:ident: Vec<$entry:ty> }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            /// The result type, always `complete`.
            #[serde(default, deserialize_with = "crate::lenient::or_default")]
            pub result_type: crate::tag::Complete,
            $(#[$entries_doc])*
            #[serde(deserialize_with = "crate::lenient::list")]
            pub $entries: Vec<$entry>,
            /// The cursor of the next page; absent on the last page.
            #[serde(
                default,
                deserialize_with = "crate::lenient::cursor",
                skip_serializing_if = "Option::is_none"
            )]
            pub next_cursor: Option<String>,
            /// The time for which the result may be cached.
            #[serde(default, deserialize_with = "crate::lenient::or_default")]
            pub ttl_ms: crate::Ttl,
            /// The scope in which a cached result may be shared.
            #[serde(default, deserialize_with = "crate::lenient::or_default")]
            pub cache_scope: crate::CacheScope,
            /// Further metadata (`_meta`).
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<crate::Meta>,
            /// Members that have no field in this type.
            #[serde(flatten)]
            pub extra: serde_json::Map<String, serde_json::Value>,
        }

        impl $name {
            /// Creates a result of one page that must not be cached.
            pub fn new($entries: Vec<$entry>) -> Self {
                Self {
                    result_type: crate::tag::Complete,
                    $entries,
                    next_cursor: None,
                    ttl_ms: crate::Ttl::default(),
                    cache_scope: crate::CacheScope::default(),
                    meta: None,
                    extra: serde_json::Map::new(),
                }
            }
        }
    };
}
pub(crate) use list_result;
