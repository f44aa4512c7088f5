//! The results of the four lists, which differ in their entries only.

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
