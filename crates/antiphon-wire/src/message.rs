//! The envelope: one JSON-RPC message. Its `method`, `id`, `result` and `error` determine its kind.

use crate::{
    ErrorCode, ErrorObject, RequestId,
    members::{Object, is_empty_array, object_or_empty, present, whole},
    tag::JsonRpc,
};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, value::RawValue};
use std::borrow::Cow;

/// The maximum nesting depth of arrays and objects in a message.
pub const MAX_DEPTH: usize = 128;

/// One received message, borrowed from its bytes.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A message with `method` and `id`.
    Request(Request<'a>),
    /// A message with `method` and without `id`.
    Notification(Notification<'a>),
    /// A message with `result` or `error`, and with an `id`.
    Response(Response<'a>),
}

/// A request. Its `params` are the text that was sent.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The id, chosen by the sender. The response repeats it.
    pub id: RequestId,
    /// The name of the requested method.
    pub method: Cow<'a, str>,
    /// The request's `params`, as raw JSON text.
    pub params: Option<&'a RawValue>,
}

/// A notification: a message without a response.
#[derive(Debug)]
pub struct Notification<'a> {
    /// The name of the notification.
    pub method: Cow<'a, str>,
    /// The notification's `params`, as raw JSON text.
    pub params: Option<&'a RawValue>,
}

/// A response: a result or an error, never both.
#[derive(Debug)]
pub struct Response<'a> {
    /// The id of the request; absent only on an error whose request could not be read.
    pub id: Option<RequestId>,
    /// The result, as raw JSON text, or the error.
    pub outcome: Result<&'a RawValue, ErrorObject>,
}

/// A message that could not be read, as the error for the response.
#[derive(Debug)]
pub struct Unreadable {
    /// The id, if the id could be read.
    pub id: Option<RequestId>,
    /// The error `-32700` or `-32600`, with a message that describes the fault.
    pub error: ErrorObject,
}

impl Unreadable {
    fn new(id: Option<RequestId>, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { id, error: ErrorObject::new(code, message) }
    }
}

/// The members that an envelope may have. The derived implementation rejects a member that occurs twice.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// The id only, for the response to an envelope that is otherwise unreadable.
#[derive(Deserialize)]
struct IdOnly<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
}

impl<'a> Incoming<'a> {
    /// Reads one message. A byte order mark before it is ignored.
    ///
    /// # Errors
    /// Returns [`Unreadable`] with the error for the response: `-32700` for text that is not JSON, `-32600` for JSON
    /// that is not one
    /// message: an array (batches do not exist in this protocol), another value, a wrong `jsonrpc`, an `id` that
    /// is neither a string nor an integer, `params` that are no object, a double member, or nesting beyond
    /// [`MAX_DEPTH`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        Self::read(bytes, false)
    }

    /// Reads one message, strictly or as a client.
    pub(crate) fn read(bytes: &'a [u8], is_lenient: bool) -> Result<Self, Unreadable> {
        let mut envelope = read_envelope(bytes)?;
        if is_lenient {
            envelope.params = envelope.params.filter(|params| !is_empty_array(params));
            envelope.result = envelope.result.map(object_or_empty);
            // Programs that write each member of one type write `null` for those that a message does not have.
            if envelope.error.is_some() || envelope.method.is_some() {
                envelope.result = envelope.result.filter(|result| result.get() != "null");
            }
            if envelope.method.is_some() {
                envelope.id = envelope.id.filter(|id| id.get() != "null");
            }
        }
        let id = read_id(&envelope, is_lenient)?;
        if envelope.jsonrpc.is_none_or(|raw| serde_json::from_str::<JsonRpc>(raw.get()).is_err()) {
            return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
        }
        if let Some(method) = envelope.method {
            if envelope.result.is_some() || envelope.error.is_some() {
                return Err(invalid(id, "a message has either a `method` or an outcome, not both"));
            }
            let Ok(method) = serde_json::from_str::<Text<'_>>(method.get()) else {
                return Err(invalid(id, "`method` must be a string"));
            };
            let (method, params) = (method.0, envelope.params);
            if params.is_some_and(|params| !params.get().starts_with('{')) {
                return Err(invalid(id, "`params` must be an object"));
            }
            return Ok(match id {
                Some(id) => Self::Request(Request { id, method, params }),
                None => Self::Notification(Notification { method, params }),
            });
        }
        let outcome = match (envelope.result, envelope.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(read_error(error, &id, is_lenient)?),
            (Some(_), Some(_)) => {
                return Err(invalid(id, "a response has a `result` or an `error`, not both"));
            }
            (None, None) => return Err(invalid(id, "`method` is missing")),
        };
        if id.is_none() && outcome.is_ok() {
            return Err(invalid(None, "`id` is missing"));
        }
        Ok(Self::Response(Response { id, outcome }))
    }
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn invalid(id: Option<RequestId>, message: impl Into<String>) -> Unreadable {
    Unreadable::new(id, ErrorCode::INVALID_REQUEST, message)
}

fn read_id(envelope: &Envelope<'_>, is_lenient: bool) -> Result<Option<RequestId>, Unreadable> {
    let Some(raw) = envelope.id else { return Ok(None) };
    // Base JSON-RPC writes `null` where the id of the failed request could not be read. Many servers do.
    if raw.get() == "null" && envelope.method.is_none() && envelope.error.is_some() {
        return Ok(None);
    }
    // > Unlike base JSON-RPC, the ID **MUST NOT** be `null`.
    let id = serde_json::from_str(raw.get()).or_else(|fault| match whole_id(raw) {
        // A response repeats an id. A request chooses one.
        Some(id) if is_lenient && envelope.method.is_none() => Ok(id),
        _ => Err(fault),
    });
    id.map(Some).map_err(|_| invalid(None, "`id` must be a string or an integer"))
}

/// Returns the whole number that is written as a float.
fn whole_id(raw: &RawValue) -> Option<RequestId> {
    let number: Number = serde_json::from_str(raw.get()).ok()?;
    whole(&number).map(RequestId::from)
}

fn read_error(error: &RawValue, id: &Option<RequestId>, is_lenient: bool) -> Result<ErrorObject, Unreadable> {
    let read = serde_json::from_str::<Object<ErrorObject>>(error.get()).map(|Object(error)| error);
    read.ok()
        .or_else(|| is_lenient.then(|| read_error_leniently(error)).flatten())
        .ok_or_else(|| invalid(id.clone(), "`error` must have a `code` and a `message`"))
}

/// Reads an error whose code is a text or a float. Its `data` is left out if it does not decode.
fn read_error_leniently(error: &RawValue) -> Option<ErrorObject> {
    #[derive(Deserialize)]
    struct ErrorIn<'a> {
        code: Value,
        message: String,
        #[serde(borrow, default, deserialize_with = "present")]
        data: Option<&'a RawValue>,
    }
    let Object(ErrorIn { code, message, data }) =
        serde_json::from_str::<Object<ErrorIn<'_>>>(error.get()).ok()?;
    let number = match code {
        Value::Number(number) => Some(number),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }?;
    let code = number.as_i64().or_else(|| whole_code(number.as_f64()?))?;
    let data = data.and_then(|data| serde_json::from_str(data.get()).ok());
    Some(ErrorObject { data, ..ErrorObject::new(ErrorCode(code), message) })
}

/// Returns the whole number that a float is. Codes are far below the numbers of which floats leave some out.
fn whole_code(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && float.abs() <= f64::from(i32::MAX)).then_some(float as i64)
}

fn read_envelope(bytes: &[u8]) -> Result<Envelope<'_>, Unreadable> {
    // RFC 8259, 8.1: implementations that parse JSON texts MAY ignore the presence of a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let not_json = || Unreadable::new(None, ErrorCode::PARSE_ERROR, "Parse error: the message is not JSON");
    // serde_json looks only at the strings it decodes.
    let text = std::str::from_utf8(bytes).map_err(|_| not_json())?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        // serde would read an array into the struct, by position.
        Some(_) => {
            return Err(match serde_json::from_str::<serde::de::IgnoredAny>(text) {
                Ok(_) if bytes.trim_ascii_start().starts_with(b"[") => invalid(
                    None,
                    "the message must be one JSON object: batches are not part of this protocol",
                ),
                Ok(_) => invalid(None, "the message must be a JSON object"),
                Err(_) => not_json(),
            });
        }
        None => return Err(not_json()),
    }
    if !nests_within(bytes, MAX_DEPTH) {
        return Err(invalid(id_alone(text), format!("the message nests deeper than {MAX_DEPTH} levels")));
    }
    serde_json::from_str(text).map_err(|fault| match fault.classify() {
        serde_json::error::Category::Data => invalid(id_alone(text), format!("not a message: {fault}")),
        _ => not_json(),
    })
}

/// Returns the id of an object that is no envelope, or `None` if the id occurs twice. The function does not recurse,
/// even if the text nests deeply.
fn id_alone(text: &str) -> Option<RequestId> {
    let id = serde_json::from_str::<IdOnly<'_>>(text).ok()?.id?;
    serde_json::from_str(id.get()).ok()
}

/// Returns `true` if arrays and objects nest no deeper than `limit`. For text that is not JSON the result may be
/// either value.
fn nests_within(bytes: &[u8], limit: usize) -> bool {
    // Most messages have fewer brackets than the limit, and counting them needs no branches.
    if bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= limit {
        return true;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return false;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

#[derive(Serialize)]
struct RequestOut<'a, P: ?Sized> {
    jsonrpc: JsonRpc,
    id: &'a RequestId,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct NotificationOut<'a, P: ?Sized> {
    jsonrpc: JsonRpc,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct ResultOut<'a, R: ?Sized> {
    jsonrpc: JsonRpc,
    id: &'a RequestId,
    result: &'a R,
}

#[derive(Serialize)]
struct ErrorOut<'a> {
    jsonrpc: JsonRpc,
    // > Error responses MUST include the same ID as the request they correspond to (except in error cases where
    // > the ID could not be read due a malformed request).
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    error: &'a ErrorObject,
}

/// Writes a request.
///
/// # Errors
/// Returns an error only if `params` cannot be written as JSON.
pub fn write_request<P: Serialize + ?Sized>(
    id: &RequestId,
    method: &str,
    params: &P,
) -> Result<Vec<u8>, serde_json::Error> {
    write(&RequestOut { jsonrpc: JsonRpc, id, method, params })
}

/// Writes a notification.
///
/// # Errors
/// Returns an error only if `params` cannot be written as JSON.
pub fn write_notification<P: Serialize + ?Sized>(
    method: &str,
    params: &P,
) -> Result<Vec<u8>, serde_json::Error> {
    write(&NotificationOut { jsonrpc: JsonRpc, method, params })
}

/// Writes the response to a request that succeeded.
///
/// # Errors
/// Returns an error only if `result` cannot be written as JSON.
pub fn write_result<R: Serialize + ?Sized>(id: &RequestId, result: &R) -> Result<Vec<u8>, serde_json::Error> {
    write(&ResultOut { jsonrpc: JsonRpc, id, result })
}

/// Writes a message on one line. Most messages fit into the initial capacity of the buffer.
fn write(message: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::with_capacity(1024);
    serde_json::to_writer(&mut bytes, message)?;
    on_one_line(&mut bytes);
    Ok(bytes)
}

/// Replaces line ends by spaces.
///
/// > Messages are delimited by newlines, and **MUST NOT** contain embedded newlines.
///
/// Text that was read as JSON, for example a form that an author wrote, is written unchanged. A bare line end in
/// such text is white space; inside a string the line end would be escaped.
fn on_one_line(bytes: &mut [u8]) {
    // Any control character: the compiler finds the least byte with vector instructions, and nearly no message has one.
    let least = bytes.iter().fold(u8::MAX, |least, byte| least.min(*byte));
    if least < b' ' {
        for byte in bytes.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
}

/// Writes the response to a request that failed. `id` is `None` if the id could not be read.
pub fn write_error(id: Option<&RequestId>, error: &ErrorObject) -> Vec<u8> {
    // Strings, an integer and a JSON value: there is nothing in it that serde_json cannot write.
    serde_json::to_vec(&ErrorOut { jsonrpc: JsonRpc, id, error }).unwrap_or_default()
}
