//! Reading of messages that are not quite those of the specification. A client reads them so; nothing is written so.
//!
//! Each rule has one place. A rule changes no name, identifier, key, URI or choice (`enum`, `const`), because these go back to the
//! peer.
//!
//! | rule | place | peers that need it |
//! |---|---|---|
//! | a byte order mark before a message, on both sides | [`Incoming::parse`] | .NET and PowerShell, which write one before the first line |
//! | half of a surrogate pair in a text is U+FFFD | [`repaired`] | JavaScript servers that cut a text with `slice`: OpenClaw, technocore-chat |
//! | an entry of a list that does not decode is left out | [`page`] | servers with one bad tool, seen with Claude Code, mastra, neuro-san and the MCP server of GitLab |
//! | `null` for a `result` beside an `error` or a `method`, and for the `id` of a notification, is absent | [`parse`] | .NET and Python, with one type for all messages |
//! | `null` for an optional array or object, a list or `resultType` is absent | `or_default` | .NET and Java: data-api-builder, OpenLiberty, aj-mcp; the MCP server of Roblox Studio |
//! | `{}` for a list without entries | `list` | Lua, which has one type for both: mcphub.nvim |
//! | a cursor and a TTL in the other of text and number | `cursor`, [`Ttl`](crate::Ttl) | Python and PHP, whose cursors are offsets |
//! | `[]` for an object without members | [`parse`] for `params` and `result`; `optional_object_or_empty`, `members_or_empty`, `capabilities` | PHP: aiquila, bricks-mcp, novamira, the MCP schema for PHP |
//! | annotations and icons that do not decode are left out | `annotations`, `icons` | PHP (`[]`), texts in the place of booleans |
//! | titles, descriptions, media types, sizes and totals of another type are left out; digits in a text are a number | `shown_text`, `shown_number` | PHP, with `false` for what is missing and numbers as texts |
//! | `sizes` of an icon as one text | `sizes` | servers of the drafts before 2025-11-25, GitHub Copilot's command line |
//! | a content block that does not decode is a block of an unknown type | [`ContentBlock`](crate::ContentBlock) | servers with `null` for a required text |
//! | a version of a server that is no text is empty | [`InitializeResult`](crate::InitializeResult) | .NET, whose assemblies may have none |
//! | one question of a round that cannot be read is an [`UnknownAsk`](crate::UnknownAsk) | [`InputRequests`](crate::InputRequests) | JavaScript servers that cut a choice of an `enum`; servers of later revisions |
//! | `inputRequests` without entries in a final result is absent | [`Outcome`](crate::Outcome) | .NET and PHP, which write each member of a type |
//! | `1`, `0`, `"true"` and `"false"` for a boolean that decides something | `flag` | PHP, Python and SQLite, whose booleans are numbers or texts |
//! | the code of an error as a text or as a float; `data` that does not decode is left out | [`parse`] | PHP, whose `getCode` may be a text; JavaScript and Lua, whose numbers are floats |
//! | the id `1.0` of a response to the request 1 | [`parse`] | JavaScript and GDScript, whose numbers are floats: Godot-MCP-Native |
//! | the id `"1"` of a response to the request 1 | [`RequestId::text_as_number`](crate::RequestId::text_as_number) | servers in Python and C: python-sdk, codebase-memory-mcp |

mod surrogates;

pub use surrogates::repaired;
pub(crate) use surrogates::{all_replaced, has_half};

use crate::{
    Incoming, Unreadable,
    members::{Members, whole},
};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned},
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use std::{fmt, marker::PhantomData};

/// Reads one message of a server. Call [`repaired`] before.
///
/// Other than [`Incoming::parse`], the function accepts `[]` for `params` and for a result without members, `null` for a `result`
/// beside an `error` or a `method` and for the id of a notification, the id of a response as a float, and the code of an error as a text or as a float.
///
/// # Errors
/// The same as those of [`Incoming::parse`].
pub fn parse(message: &[u8]) -> Result<Incoming<'_>, Unreadable> {
    Incoming::read(message, true)
}

/// The maximum number of entries of a page that are described.
const MAX_DESCRIBED: usize = 16;

/// The entries that were left out of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The first of them, at most 16.
    pub first: Vec<LeftOutEntry>,
    /// The number of all of them.
    pub count: usize,
}

/// An entry that does not decode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOutEntry {
    /// The name or the URI of the entry, if it has one that can be read. Text of the peer: escape it.
    pub name: Option<String>,
    /// The place of the entry in its page, from 0.
    pub index: usize,
    /// The reason. Contains text of the peer: escape it.
    pub reason: String,
}

impl LeftOut {
    fn add(&mut self, index: usize, entry: &RawValue, fault: &serde_json::Error) {
        self.count += 1;
        if self.first.len() < MAX_DESCRIBED {
            let name = serde_json::from_str(entry.get()).ok().and_then(Named::into_text);
            self.first.push(LeftOutEntry { name, index, reason: fault.to_string() });
        }
    }
}

/// The members that name an entry.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri_template: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task_id: Option<&'a RawValue>,
}

impl Named<'_> {
    fn into_text(self) -> Option<String> {
        let mut all = [self.name, self.uri, self.uri_template, self.task_id].into_iter().flatten();
        all.find_map(|name| serde_json::from_str(name.get()).ok())
    }
}

/// Reads a page of a list: the entries of the member `list` are each a `T`. Entries that do not decode are left out of the page,
/// and described beside it.
///
/// # Errors
/// The error of the deserializer, if the page does not decode for another reason.
pub fn page<P: DeserializeOwned, T: DeserializeOwned>(
    result: &RawValue,
    list: &str,
) -> Result<(P, LeftOut), serde_json::Error> {
    let fault = match serde_json::from_str(result.get()) {
        Ok(page) => return Ok((page, LeftOut::default())),
        Err(fault) => fault,
    };
    let Ok(mut members) = serde_json::from_str::<Members>(result.get()) else { return Err(fault) };
    let Some((_, entries)) = members.0.iter_mut().find(|(name, _)| name == list) else { return Err(fault) };
    let Ok(mut all) = serde_json::from_str::<Vec<&RawValue>>(entries.get()) else { return Err(fault) };
    let (mut left_out, mut index) = (LeftOut::default(), 0);
    all.retain(|entry| {
        let read = serde_json::from_str::<T>(entry.get());
        if let Err(fault) = &read {
            left_out.add(index, entry, fault);
        }
        index += 1;
        read.is_ok()
    });
    if left_out.count == 0 {
        return Err(fault);
    }
    *entries = to_raw_value(&all)?;
    let page = to_raw_value(&members)?;
    Ok((serde_json::from_str(page.get())?, left_out))
}

/// Reads a member that may be `null`, which counts as absent.
pub(crate) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a list. `null`, and an object without members, are a list without entries.
pub(crate) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct ListVisitor<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for ListVisitor<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a sequence")
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, entries: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(de::value::SeqAccessDeserializer::new(entries))
        }
        fn visit_map<A: de::MapAccess<'de>>(self, mut members: A) -> Result<Vec<T>, A::Error> {
            match members.next_entry::<de::IgnoredAny, de::IgnoredAny>()? {
                None => Ok(Vec::new()),
                Some(_) => Err(de::Error::invalid_type(de::Unexpected::Map, &self)),
            }
        }
        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }
    }
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

/// Reads the cursor of the next page. A number is its text.
pub(crate) fn cursor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(cursor) => Ok(Some(cursor)),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(de::Error::custom("expected a cursor that is a string")),
    }
}

/// Returns the value, or an object without members in the place of an array without entries.
fn with_object(value: Value) -> Value {
    match value {
        Value::Array(entries) if entries.is_empty() => Value::Object(Map::new()),
        other => other,
    }
}

/// Reads an optional object. An array without entries is one without members.
pub(crate) fn optional_object_or_empty<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct ObjectVisitor<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de> + Default> de::Visitor<'de> for ObjectVisitor<T> {
        type Value = Option<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
            T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Some)
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, mut entries: A) -> Result<Option<T>, A::Error> {
            match entries.next_element::<de::IgnoredAny>()? {
                None => Ok(Some(T::default())),
                Some(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &self)),
            }
        }
        fn visit_unit<E>(self) -> Result<Option<T>, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(ObjectVisitor(PhantomData))
}

/// Reads an object. An empty array is one without members.
pub(crate) fn members_or_empty<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    match with_object(Value::deserialize(deserializer)?) {
        Value::Object(members) => Ok(members),
        _ => Err(de::Error::custom("expected an object")),
    }
}

/// Reads capabilities. A capability or an extension that is an empty array is an object without members.
pub(crate) fn capabilities<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    let mut members = members_or_empty(deserializer)?;
    for capability in members.values_mut() {
        *capability = with_object(capability.take());
    }
    if let Some(Value::Object(extensions)) = members.get_mut("extensions") {
        for extension in extensions.values_mut() {
            *extension = with_object(extension.take());
        }
    }
    Ok(members)
}

/// Reads annotations. Those that do not decode are left out: they are hints.
pub(crate) fn annotations<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Value::deserialize(deserializer).map(|value| T::deserialize(with_object(value)).ok())
}

/// Reads icons. Those that do not decode are left out: they are for display only.
pub(crate) fn icons<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Array(icons) => icons.into_iter().filter_map(|icon| T::deserialize(icon).ok()).collect(),
        _ => Vec::new(),
    })
}

/// Reads the sizes of an icon: an array of words, or the words in one text.
pub(crate) fn sizes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(Some(text.split_whitespace().map(str::to_owned).collect())),
        other => Option::deserialize(other).map_err(de::Error::custom),
    }
}

/// Reads an optional text that is only shown. Anything else is left out.
pub(crate) fn shown_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// Reads an optional whole number that is only shown, or its digits in a text. Anything else is left out.
pub(crate) fn shown_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => whole(&number),
        Value::String(digits) => digits.parse().ok(),
        _ => None,
    })
}

/// Reads an optional boolean. The numbers 1 and 0, and the words in a text, are booleans.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(flag)),
        Value::Number(number) if number.as_f64() == Some(1.0) => Ok(Some(true)),
        Value::Number(number) if number.as_f64() == Some(0.0) => Ok(Some(false)),
        Value::String(text) if text.eq_ignore_ascii_case("true") || text == "1" => Ok(Some(true)),
        Value::String(text) if text.eq_ignore_ascii_case("false") || text == "0" => Ok(Some(false)),
        other => Err(de::Error::custom(format_args!("expected `true` or `false`, not {}", kind_of(&other)))),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "another number",
        Value::String(_) => "another text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
