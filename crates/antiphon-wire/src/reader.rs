//! The reader of usual requests: one walk over the text, which finds the members of `params` that servers read for any method.
//!
//! ```text
//! bytes ── UTF-8 ── walk ─┬─ names   no object names a member twice      (walk.rs)
//!                         ├─ text    strings, numbers, words             (walk.rs)
//!                         └─ members of envelope, params, _meta and
//!                            clientCapabilities, the rest as raw text    (here, walk.rs)
//! ```
//!
//! The reader makes no errors. A message in which anything is unusual is left to [`Incoming::parse`](crate::Incoming)
//! and serde, which also find the error to answer with. A message that the reader takes has the same values in both: the
//! tests and the fuzz target `request_reader` compare them.
//!
//! | left to the other readers | reason |
//! |---|---|
//! | text that is not JSON or not UTF-8, or nests beyond [`MAX_DEPTH`](crate::MAX_DEPTH) | an error |
//! | a name that an object has twice | an error in some places and for some methods only |
//! | an escape in the name of a member | the name would have to be decoded before it is compared |
//! | an escape in a string that is read: `id`, `method`, `name`, `uri`, the version .. | rare |
//! | notifications, responses, `params` or `_meta` that are missing or incomplete | not a usual request |
//! | a known member of an unexpected type | serde has the rules |

use crate::{
    AskSupport, LogLevel, RequestId, RequestMeta, TASKS_EXTENSION,
    capability::DeclaredCapabilities,
    meta_keys,
    walk::{Walk, walked},
};
use serde::{Deserialize, Deserializer, de::value::BorrowedStrDeserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A usual request, read in one walk: envelope, members of `params`, and complete metadata.
#[derive(Debug)]
#[non_exhaustive]
pub struct WholeRequest<'a> {
    /// The id, chosen by the sender.
    pub id: RequestId,
    /// The method.
    pub method: &'a str,
    /// The protocol version that `_meta` names.
    pub version: &'a str,
    /// The members of `params`.
    pub params: RequestParams<'a>,
    /// The members of `params._meta`; version and capabilities are there.
    pub meta: RequestMeta<'a>,
    /// The whole text of `params`.
    pub text: &'a RawValue,
    /// The proof that no object of the message names a member twice.
    pub names: UniqueNames,
}

/// The proof that no object of a text names one member twice, on any level.
///
/// Two readers of such a text cannot read two different values.
#[derive(Clone, Copy, Debug)]
pub struct UniqueNames(());

impl UniqueNames {
    /// Makes the proof from a walk of the caller's own, for a text that [`WholeRequest`] did not read.
    ///
    /// # Errors
    /// The error of `walk`, which must be one for every text that names a member twice.
    pub fn from_walk<E>(text: &str, walk: impl FnOnce(&str) -> Result<(), E>) -> Result<Self, E> {
        walk(text).map(|()| Self(()))
    }
}

impl<'a> WholeRequest<'a> {
    /// Reads a request if the request is a usual one. `None` says nothing about the message, not even that it is wrong.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut walk = Walk::new(std::str::from_utf8(bytes).ok()?);
        let (mut is_json_rpc, mut id, mut method, mut text) = (false, None, None, None);
        let (mut params, mut meta, mut version) = (RequestParams::default(), RequestMeta::default(), None);
        walk.object(|walk, name| {
            match name {
                "jsonrpc" => is_json_rpc = walk.plain_string()? == "2.0",
                "id" => id = Some(read_id(walk)?),
                "method" => method = Some(walk.plain_string()?),
                "params" => text = Some(read_params(walk, &mut params, &mut meta, &mut version)?),
                // A response, or an error.
                "result" | "error" => return None,
                _ => walk.skip()?,
            }
            Some(())
        })?;
        walk.end()?;
        let text = text.filter(|_| is_json_rpc)?;
        Some(Self { id: id?, method: method?, version: version?, params, meta, text, names: UniqueNames(()) })
    }
}

/// Reads the members of `params` and of its `_meta`, and returns the whole of `params`. The values are written where they
/// stay, because they are large.
fn read_params<'a>(
    walk: &mut Walk<'a>,
    params: &mut RequestParams<'a>,
    meta: &mut RequestMeta<'a>,
    version: &mut Option<&'a str>,
) -> Option<&'a RawValue> {
    let start = walk.begin()?;
    walk.object(|walk, name| {
        match name {
            "_meta" => {
                let start = walk.begin()?;
                read_meta(walk, meta, version)?;
                params.meta = Some(walked(walk.since(start)?)?);
            }
            "name" => params.name = string_member(walk)?,
            "uri" => params.uri = string_member(walk)?,
            "taskId" => params.task_id = string_member(walk)?,
            "arguments" => params.arguments = raw_member(walk)?,
            "inputResponses" => params.input_responses = raw_member(walk)?,
            "requestState" => params.request_state = raw_member(walk)?,
            "task" => params.task = raw_member(walk)?,
            "cursor" => params.cursor = raw_member(walk)?,
            _ => walk.skip()?,
        }
        Some(())
    })?;
    walked(walk.since(start)?)
}

fn read_meta<'a>(
    walk: &mut Walk<'a>,
    meta: &mut RequestMeta<'a>,
    version: &mut Option<&'a str>,
) -> Option<()> {
    walk.object(|walk, name| {
        match name {
            meta_keys::PROTOCOL_VERSION => *version = Some(walk.plain_string()?),
            meta_keys::CLIENT_CAPABILITIES => {
                let declared = read_capabilities(walk)?;
                (meta.asks, meta.tasks) = (Some(declared.asks), declared.tasks);
            }
            meta_keys::CLIENT_INFO => meta.client_info = raw_member(walk)?,
            meta_keys::LOG_LEVEL => meta.log_level = Some(read_level(walk)?),
            meta_keys::PROGRESS_TOKEN => meta.progress_token = Some(read_id(walk)?.into_value()),
            _ => walk.skip()?,
        }
        Some(())
    })?;
    meta.protocol_version = version.map(Cow::Borrowed);
    meta.asks.map(drop)
}

/// Reads `clientCapabilities`: only objects declare something, and other values are left to serde.
fn read_capabilities(walk: &mut Walk<'_>) -> Option<DeclaredCapabilities> {
    let (mut asks, mut tasks) = (AskSupport::NONE, false);
    walk.object(|walk, name| {
        match name {
            "elicitation" => {
                let (form, url) = read_modes(walk, "form", "url")?;
                // > an empty capabilities object is equivalent to declaring support for `form` mode only
                (asks.form, asks.url) = (form || !url, url);
            }
            "sampling" => {
                asks.sampling = true;
                (asks.sampling_tools, asks.sampling_context) = read_modes(walk, "tools", "context")?;
            }
            "roots" => {
                asks.roots = true;
                walk.skip_object()?;
            }
            "extensions" => tasks = read_modes(walk, TASKS_EXTENSION, "")?.0,
            _ => walk.skip()?,
        }
        Some(())
    })?;
    Some(DeclaredCapabilities { asks, tasks })
}

/// Reads which of two modes a capability has.
fn read_modes(walk: &mut Walk<'_>, first: &str, second: &str) -> Option<(bool, bool)> {
    let mut modes = (false, false);
    walk.object(|walk, name| {
        if name == first {
            modes.0 = true;
            walk.skip_object()
        } else if name == second {
            modes.1 = true;
            walk.skip_object()
        } else {
            walk.skip()
        }
    })?;
    Some(modes)
}

fn read_level(walk: &mut Walk<'_>) -> Option<LogLevel> {
    let name = BorrowedStrDeserializer::<serde::de::value::Error>::new(walk.plain_string()?);
    LogLevel::deserialize(name).ok()
}

/// Reads a string or an integer.
fn read_id(walk: &mut Walk<'_>) -> Option<RequestId> {
    if walk.token()? == b'"' {
        return walk.plain_string().map(RequestId::from);
    }
    let text = walk.number()?;
    match text.parse::<i64>() {
        // A float, as is what has a fraction or an exponent.
        Ok(0) if text.starts_with('-') => None,
        Ok(number) => Some(number.into()),
        Err(_) => text.parse::<u64>().ok().map(RequestId::from),
    }
}

/// Reads any value as its text; `null` is absent.
fn raw_member<'a>(walk: &mut Walk<'a>) -> Option<Option<&'a RawValue>> {
    let start = walk.begin()?;
    walk.skip()?;
    match walk.since(start)? {
        "null" => Some(None),
        text => walked(text).map(Some),
    }
}

fn string_member<'a>(walk: &mut Walk<'a>) -> Option<Option<StringMember<'a>>> {
    walk.plain_string().map(|text| Some(StringMember::Text(Cow::Borrowed(text))))
}

/// The members of `params` that a server reads for any method. A member that is `null` is absent.
///
/// Most members stay text, because their type depends on the method.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequestParams<'a> {
    /// The metadata; [`RequestMeta`](crate::RequestMeta) reads it.
    #[serde(rename = "_meta", borrow, default)]
    pub meta: Option<&'a RawValue>,
    /// The name of a tool or prompt.
    #[serde(borrow, default)]
    pub name: Option<StringMember<'a>>,
    /// The URI of a resource.
    #[serde(borrow, default)]
    pub uri: Option<StringMember<'a>>,
    /// The id of a task.
    #[serde(borrow, default)]
    pub task_id: Option<StringMember<'a>>,
    /// The arguments of a tool or prompt.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    /// The answers to the questions of the last round.
    #[serde(borrow, default)]
    pub input_responses: Option<&'a RawValue>,
    /// The state of the call, as the last round carried it.
    #[serde(borrow, default)]
    pub request_state: Option<&'a RawValue>,
    /// The wish for a task: [`TaskMetadata`](crate::TaskMetadata) reads it. Only in 2025-11-25, and in the draft after that
    /// revision.
    #[serde(borrow, default)]
    pub task: Option<&'a RawValue>,
    /// The cursor of a page of a list.
    #[serde(borrow, default)]
    pub cursor: Option<&'a RawValue>,
}

/// A member that has to be a string, decoded once.
///
/// Another value is not an error of the message: the method that needs the string reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StringMember<'a> {
    /// The string.
    Text(Cow<'a, str>),
    /// Another value, or a string with half of a surrogate pair.
    NotAString,
}

impl StringMember<'_> {
    /// The string, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::NotAString => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for StringMember<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // serde borrows a `Cow` only inside of a type that says so.
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
        let text = <&'a RawValue>::deserialize(deserializer)?.get();
        Ok(serde_json::from_str(text).map_or(Self::NotAString, |Text(text)| Self::Text(text)))
    }
}
