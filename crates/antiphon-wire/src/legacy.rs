//! Messages that exist only in the revisions up to 2025-11-25: the handshake, asks as requests of the server,
//! tasks of the earlier form, and a few notifications.
//!
//! Results, content, tools, prompts and resources are those of today with fewer members. The same types read them.

mod task;

pub use task::{
    DraftTaskResult, LegacyCreateTaskResult, LegacyTask, ListTasksResult, RelatedTaskMetadata,
    TaskInputParams, TasksCapability, related_task_of, with_related_task,
};

use crate::{
    ClientCapabilities, CreateMessageParams, ElicitRequest, ErrorCode, ErrorObject, FormSchema,
    Implementation, InputRequest, LogLevel, Meta, ProgressToken, ProtocolVersion, RequestId, SamplingBlock,
    SamplingContent, SamplingMessage, ServerCapabilities, lenient::or_default, members::Members, meta_keys,
    write_request,
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

/// The params of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// The newest version that the client supports.
    pub protocol_version: ProtocolVersion,
    /// The capabilities of the client, for the whole session.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
    /// The client's name and version.
    pub client_info: Implementation,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl InitializeParams {
    /// Creates the params of the first request of a client.
    pub fn new(
        protocol_version: ProtocolVersion,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self { protocol_version, capabilities, client_info, extra: Map::new() }
    }
}

/// The result of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The version of the session.
    ///
    /// > This may not match the version that the client requested. If the client cannot support this version, it MUST
    /// > disconnect.
    pub protocol_version: ProtocolVersion,
    /// The capabilities of the server.
    #[serde(default, deserialize_with = "or_default")]
    pub capabilities: ServerCapabilities,
    /// The server's name and version.
    #[serde(deserialize_with = "identity")]
    pub server_info: Implementation,
    /// Instructions for a model on the use of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Reads the identity of a server, which is for people. A version that is no text is empty.
fn identity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Implementation, D::Error> {
    let mut members = Map::deserialize(deserializer)?;
    if !members.get("version").is_some_and(Value::is_string) {
        members.insert("version".to_owned(), Value::from(""));
    }
    Implementation::deserialize(Value::Object(members)).map_err(de::Error::custom)
}

impl InitializeResult {
    /// Creates the result of a server, without instructions.
    pub fn new(
        protocol_version: ProtocolVersion,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self {
            protocol_version,
            capabilities,
            server_info,
            instructions: None,
            meta: None,
            extra: Map::new(),
        }
    }
}

/// The params of `logging/setLevel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelParams {
    /// The lowest level of log messages that the client requests.
    pub level: LogLevel,
}

impl SetLevelParams {
    /// Creates the params that request log messages from this level on.
    pub fn new(level: LogLevel) -> Self {
        Self { level }
    }
}

/// The params of `resources/subscribe` and `resources/unsubscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscribeParams {
    /// The URI of the resource.
    pub uri: String,
}

impl SubscribeParams {
    /// Creates the params for this resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

/// The params of `notifications/elicitation/complete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The URL elicitation that is finished.
    pub elicitation_id: String,
}

impl ElicitationCompleteParams {
    /// Creates the params for a finished elicitation.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self { elicitation_id: elicitation_id.into() }
    }
}

/// An ask that is sent in a legacy session: an ordinary request of the server.
#[derive(Clone, Copy, Debug)]
pub struct LegacyAsk<'a> {
    /// The ask.
    pub request: &'a InputRequest,
    /// The version of the session.
    pub version: &'a ProtocolVersion,
    /// The id of a URL elicitation, which `notifications/elicitation/complete` repeats. Other asks have no such id.
    pub elicitation_id: Option<&'a str>,
}

impl LegacyAsk<'_> {
    /// Writes the request in the form of the session's version. Every version has progress notifications for such a
    /// request; the request's own id is their token.
    ///
    /// > When a party wants to _receive_ progress updates for a request, it includes a `progressToken` in the request
    /// > metadata.
    ///
    /// # Errors
    /// Returns an error only if the ask cannot be written as JSON.
    pub fn write(self, id: &RequestId) -> Result<Vec<u8>, serde_json::Error> {
        self.write_with(id, None)
    }

    /// Writes the request of a task.
    ///
    /// > The receiver **MUST** include the `io.modelcontextprotocol/related-task` metadata in the request to associate it with
    /// > the task.
    ///
    /// # Errors
    /// Returns an error only if the ask cannot be written as JSON.
    pub fn write_for_task(self, id: &RequestId, task_id: &str) -> Result<Vec<u8>, serde_json::Error> {
        self.write_with(id, Some(task_id))
    }

    fn write_with(self, id: &RequestId, task_id: Option<&str>) -> Result<Vec<u8>, serde_json::Error> {
        let mut params: Members = serde_json::from_str(self.params()?.get())?;
        let members = &mut params.0;
        let mut meta = match members.iter().position(|(name, _)| name == "_meta") {
            Some(at) => serde_json::from_str(members.remove(at).1.get())?,
            None => Members::default(),
        };
        meta.0.retain(|(name, _)| name != meta_keys::PROGRESS_TOKEN);
        // > Progress tokens [...] **MUST** be unique across all active requests.
        meta.0.push((meta_keys::PROGRESS_TOKEN.to_owned(), to_raw_value(id)?));
        if let Some(task_id) = task_id {
            meta.0.retain(|(name, _)| name != meta_keys::RELATED_TASK);
            let related = to_raw_value(&RelatedTaskMetadata::new(task_id))?;
            meta.0.push((meta_keys::RELATED_TASK.to_owned(), related));
        }
        members.push(("_meta".to_owned(), to_raw_value(&meta)?));
        write_request(id, self.request.method(), &params)
    }

    fn params(self) -> Result<Box<RawValue>, serde_json::Error> {
        let id = self.elicitation_id.unwrap_or_default();
        match self.request {
            InputRequest::Elicit(ElicitRequest::Form { message, requested_schema }) => {
                let mode = self.version.has_elicitation_modes().then_some("form");
                let requested_schema = if self.version.has_titled_choices() {
                    to_raw_value(requested_schema)?
                } else {
                    titles_apart(requested_schema)?
                };
                to_raw_value(&FormParams { mode, message, requested_schema })
            }
            InputRequest::Elicit(ElicitRequest::Url { message, url }) => {
                to_raw_value(&UrlWithId { mode: "url", message, url, elicitation_id: id })
            }
            InputRequest::CreateMessage(params) if !self.version.has_sampling_lists() => {
                to_raw_value(&one_block_each(params))
            }
            InputRequest::CreateMessage(params) => to_raw_value(params),
            InputRequest::ListRoots { meta } => to_raw_value(&RootsParams { meta: meta.as_ref() }),
            InputRequest::Unknown(ask) => match &ask.params {
                Some(params) => Ok(params.clone()),
                None => to_raw_value(&Members::default()),
            },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FormParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    message: &'a str,
    requested_schema: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UrlWithId<'a> {
    mode: &'static str,
    message: &'a str,
    url: &'a str,
    elicitation_id: &'a str,
}

#[derive(Serialize)]
struct RootsParams<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Meta>,
}

/// Splits every message of several blocks into messages of one block each, with the same role. Before 2025-11-25 a
/// message holds one block only.
fn one_block_each(params: &CreateMessageParams) -> CreateMessageParams {
    let mut params = params.clone();
    params.messages = std::mem::take(&mut params.messages).into_iter().flat_map(split).collect();
    params
}

fn split(message: SamplingMessage) -> Vec<SamplingMessage> {
    let one = |block: &SamplingBlock| {
        let content = SamplingContent::One(block.clone());
        SamplingMessage { content, ..message.clone() }
    };
    message.content.blocks().iter().map(one).collect()
}

/// Moves the titles of choices beside the values, as 2025-06-18 writes them: `enum` and `enumNames`.
fn titles_apart(schema: &FormSchema) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Titled {
        #[serde(rename = "const")]
        value: String,
        title: String,
    }
    let mut schema: Members = serde_json::from_str(schema.text())?;
    for (_, properties) in schema.0.iter_mut().filter(|(name, _)| name == "properties") {
        let mut fields: Members = serde_json::from_str(properties.get())?;
        for (_, field) in &mut fields.0 {
            let mut members: Members = serde_json::from_str(field.get())?;
            let Some(at) = members.0.iter().position(|(name, _)| name == "oneOf") else { continue };
            let titled: Vec<Titled> = serde_json::from_str(members.0[at].1.get())?;
            let values: Vec<&str> = titled.iter().map(|choice| choice.value.as_str()).collect();
            let names: Vec<&str> = titled.iter().map(|choice| choice.title.as_str()).collect();
            members.0[at] = ("enum".to_owned(), to_raw_value(&values)?);
            members.0.insert(at + 1, ("enumNames".to_owned(), to_raw_value(&names)?));
            *field = to_raw_value(&members)?;
        }
        *properties = to_raw_value(&fields)?;
    }
    to_raw_value(&schema)
}

/// URL elicitations that must be finished before a request is sent again: the `data` of error `-32042`.
///
/// > Servers **MAY** return [this error] when a request cannot be processed until one or more URL mode elicitations are
/// > completed.
#[derive(Clone, Debug, Default)]
pub struct UrlElicitations(pub Vec<(String, ElicitRequest)>);

impl UrlElicitations {
    /// Returns the error `-32042` that lists these elicitations. Each entry is an `elicitationId` and a URL ask; forms
    /// are left out.
    pub fn to_error(&self) -> ErrorObject {
        let elicitations: Vec<Value> = self
            .0
            .iter()
            .filter_map(|(id, ask)| match ask {
                ElicitRequest::Url { message, url } => {
                    Some(json!({ "mode": "url", "message": message, "url": url, "elicitationId": id }))
                }
                ElicitRequest::Form { .. } => None,
            })
            .collect();
        let text = "This request requires more information: open the URL, and send it again";
        ErrorObject::new(ErrorCode::URL_ELICITATION_REQUIRED, text)
            .with_data(json!({ "elicitations": elicitations }))
    }

    /// Reads the elicitations of an error. Returns `None` if the error is not `-32042`, or if no entry can be read.
    pub fn of(error: &ErrorObject) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry {
            elicitation_id: String,
        }
        if error.code != ErrorCode::URL_ELICITATION_REQUIRED {
            return None;
        }
        let entries = error.data.as_ref()?.get("elicitations")?.as_array()?;
        let read = |entry: &Value| {
            let ask = ElicitRequest::deserialize(entry).ok()?;
            let id = Entry::deserialize(entry).ok()?.elicitation_id;
            matches!(ask, ElicitRequest::Url { .. }).then_some((id, ask))
        };
        let all: Vec<(String, ElicitRequest)> = entries.iter().filter_map(read).collect();
        (!all.is_empty()).then_some(Self(all))
    }
}

/// Returns the `elicitationId` in the params of `elicitation/create`, if there is one.
pub fn elicitation_id_of(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Id {
        elicitation_id: Option<String>,
    }
    serde_json::from_str::<Id>(params.get()).ok()?.elicitation_id
}

/// Returns the progress token in the params of a request, if the sender requests progress notifications.
///
/// > Progress tokens **MUST** be a string or integer value
///
/// A [`RequestId`] has the same two forms.
pub fn progress_token_of(params: &RawValue) -> Option<ProgressToken> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Option<Asked>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Asked {
        progress_token: Option<RequestId>,
    }
    let params: Params = serde_json::from_str(params.get()).ok()?;
    serde_json::to_value(params.meta?.progress_token?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FormField, TextContent};

    fn form() -> InputRequest {
        let choices = [("a", "First"), ("b", "Second")];
        let schema = FormSchema::new(vec![FormField::one("pick", choices)]);
        InputRequest::Elicit(ElicitRequest::Form { message: "Which?".to_owned(), requested_schema: schema })
    }

    fn text_block(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }

    fn sampling() -> InputRequest {
        let block = |text| SamplingBlock::Text(TextContent::new(text));
        let mut both = SamplingMessage::user("");
        both.content = SamplingContent::Many(vec![block("a"), block("b")]);
        InputRequest::CreateMessage(Box::new(CreateMessageParams::new(
            vec![both, SamplingMessage::user("c")],
            5,
        )))
    }

    #[test]
    fn asks_in_the_words_of_each_version() {
        let url = InputRequest::Elicit(ElicitRequest::Url {
            message: "Pay.".to_owned(),
            url: "https://pay.example/1".to_owned(),
        });
        let titled = json!({ "type": "string", "title": "Pick",
            "oneOf": [{ "const": "a", "title": "First" }, { "const": "b", "title": "Second" }] });
        let apart = json!({ "type": "string", "title": "Pick", "enum": ["a", "b"], "enumNames": ["First", "Second"] });
        for (request, version, id, wanted) in [
            (
                form(),
                ProtocolVersion::V2025_11_25,
                None,
                json!({ "mode": "form", "message": "Which?", "requestedSchema":
                    { "type": "object", "properties": { "pick": titled }, "required": ["pick"] } }),
            ),
            (
                form(),
                ProtocolVersion::V2025_06_18,
                None,
                json!({ "message": "Which?", "requestedSchema":
                    { "type": "object", "properties": { "pick": apart }, "required": ["pick"] } }),
            ),
            (
                url,
                ProtocolVersion::V2025_11_25,
                Some("e1"),
                json!({ "mode": "url", "message": "Pay.", "url": "https://pay.example/1", "elicitationId": "e1" }),
            ),
            (
                sampling(),
                ProtocolVersion::V2025_11_25,
                None,
                json!({ "messages": [{ "role": "user", "content": [text_block("a"), text_block("b")] },
                    { "role": "user", "content": text_block("c") }], "maxTokens": 5 }),
            ),
            (
                sampling(),
                ProtocolVersion::V2025_06_18,
                None,
                json!({ "messages": [{ "role": "user", "content": text_block("a") },
                    { "role": "user", "content": text_block("b") }, { "role": "user", "content": text_block("c") }],
                    "maxTokens": 5 }),
            ),
            (InputRequest::ListRoots { meta: None }, ProtocolVersion::V2024_11_05, None, json!({})),
            (
                InputRequest::ListRoots {
                    meta: Some(meta(json!({ "a": 1, "progressToken": "of another" }))),
                },
                ProtocolVersion::V2025_03_26,
                None,
                json!({ "_meta": { "a": 1 } }),
            ),
        ] {
            let ask = LegacyAsk { request: &request, version: &version, elicitation_id: id };
            let sent: Value = serde_json::from_slice(&ask.write(&RequestId::from(7_u64)).unwrap()).unwrap();
            let mut wanted = wanted;
            wanted["_meta"]["progressToken"] = json!(7);
            assert_eq!(sent["params"], wanted, "{version}");
            assert_eq!((&sent["method"], &sent["id"]), (&json!(request.method()), &json!(7)));
        }
    }

    #[test]
    fn an_ask_of_a_task_names_the_task() {
        let request = InputRequest::ListRoots {
            meta: Some(meta(json!({ "a": 1, "io.modelcontextprotocol/related-task": 1 }))),
        };
        let ask =
            LegacyAsk { request: &request, version: &ProtocolVersion::V2025_11_25, elicitation_id: None };
        let sent: Value =
            serde_json::from_slice(&ask.write_for_task(&RequestId::from(7_u64), "t").unwrap()).unwrap();
        let related =
            json!({ "a": 1, "progressToken": 7, "io.modelcontextprotocol/related-task": { "taskId": "t" } });
        assert_eq!(sent["params"]["_meta"], related);
        let params = to_raw_value(&sent["params"]).unwrap();
        assert_eq!(related_task_of(&params).as_deref(), Some("t"));
        assert_eq!(related_task_of(&to_raw_value(&json!({ "_meta": {} })).unwrap()), None);
    }

    fn meta(members: Value) -> Meta {
        serde_json::from_value(members).unwrap()
    }

    #[test]
    fn only_a_progress_token_requests_progress() {
        for (params, token) in [
            (json!({ "_meta": { "progressToken": "a" } }), Some(json!("a"))),
            (json!({ "_meta": { "progressToken": 7, "other": [] } }), Some(json!(7))),
            (json!({ "_meta": { "progressToken": -7 } }), Some(json!(-7))),
            (json!({ "_meta": { "progressToken": "" } }), Some(json!(""))),
            (json!({ "_meta": { "progressToken": null } }), None),
            (json!({ "_meta": { "progressToken": 1.5 } }), None),
            (json!({ "_meta": { "progressToken": true } }), None),
            (json!({ "_meta": { "progressToken": ["a"] } }), None),
            (json!({ "_meta": "a" }), None),
            (json!({ "_meta": null }), None),
            (json!({ "progressToken": "a" }), None),
            (json!({}), None),
            (json!("a"), None),
        ] {
            assert_eq!(progress_token_of(&to_raw_value(&params).unwrap()), token, "{params}");
        }
    }

    #[test]
    fn urls_that_must_be_opened_first() {
        let ask = ElicitRequest::Url { message: "Sign in.".to_owned(), url: "https://a.example".to_owned() };
        let error = UrlElicitations(vec![("e1".to_owned(), ask)]).to_error();
        let read = UrlElicitations::of(&error).unwrap();
        assert_eq!((read.0.len(), read.0[0].0.as_str(), read.0[0].1.message()), (1, "e1", "Sign in."));
        for broken in [
            ErrorObject::internal(),
            ErrorObject::new(ErrorCode::URL_ELICITATION_REQUIRED, "no data"),
            ErrorObject::new(ErrorCode::URL_ELICITATION_REQUIRED, "none")
                .with_data(json!({ "elicitations": [{}] })),
        ] {
            assert!(UrlElicitations::of(&broken).is_none());
        }
    }
}
