//! The tools. Those of `server` have the same names, arguments and answers.
//!
//! A question is returned by hand, for rmcp has no other way: `provision` and `provision_by_hand` are one.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, RequestStateCodec, SealOptions,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde::Deserialize;
use serde_json::{Value, json};

/// The number of progress notifications in one call.
const NOTIFICATIONS: u32 = 100;
/// The time that a person has to answer.
const ANSWER_WITHIN: Duration = Duration::from_mins(10);
/// Fine for a benchmark on loopback, for nothing else.
const KEY: &[u8; 32] = b"a key for this benchmark, only.!";

#[derive(Deserialize)]
struct Records {
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    id: u64,
    name: String,
    tags: Vec<String>,
}

/// The server: its tools and the codec for its request state.
#[derive(Clone)]
pub(crate) struct Tools {
    shared: Arc<Shared>,
}

struct Shared {
    tools: Vec<Tool>,
    /// The place of each tool in the list, by its name.
    places: HashMap<String, usize>,
    region: ElicitationSchema,
    codec: RequestStateCodec,
}

impl Tools {
    /// The measured tools, and `more` that differ in their names only.
    pub(crate) fn new(more: usize) -> Result<Self, Box<dyn Error>> {
        let mut tools = vec![
            Tool::new("echo", "Say it back.", one("text", json!({ "type": "string" }))),
            Tool::new("provision", "Order a database.", one("name", json!({ "type": "string" }))),
            Tool::new("provision_by_hand", "Order a database.", one("name", json!({ "type": "string" }))),
            Tool::new("progress", "Report progress.", JsonObject::new()),
            Tool::new("text", "Count the bytes of a text.", one("text", json!({ "type": "string" }))),
            Tool::new("records", "Add up records.", one("records", records_schema())),
        ];
        tools.extend((0..more).map(|number| {
            let schema = one("text", json!({ "type": "string" }));
            Tool::new(format!("tool_{number}"), "Say it back.", schema)
        }));
        let places = tools.iter().enumerate().map(|(place, tool)| (tool.name.to_string(), place)).collect();
        let region = ElicitationSchema::builder().required_string("region").build()?;
        let codec = RequestStateCodec::try_new(KEY.as_slice())?;
        Ok(Self { shared: Arc::new(Shared { tools, places, region, codec }) })
    }

    fn provision(&self, call: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let name = string_argument(call, "name")?;
        let Some(state) = call.request_state.as_deref() else {
            return self.ask_region(call);
        };
        let binding = binding(call)?;
        let opened: Result<Value, _> = self.shared.codec.open_json_with(state, &binding);
        if opened.is_err() {
            return Err(ErrorData::invalid_params("invalid requestState", None));
        }
        let answer = call.input_responses.as_ref().and_then(|all| all.get("region"));
        let Some(answer) = answer else {
            return self.ask_region(call);
        };
        if answer["action"] != "accept" {
            return Ok(text_result("Nothing was provisioned."));
        }
        match answer["content"]["region"].as_str() {
            Some(region) => Ok(text_result(format!("Provisioned {name:?} in {region}."))),
            None => self.ask_region(call),
        }
    }

    fn ask_region(&self, call: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let binding = binding(call)?;
        let options = SealOptions::new().associated_data(&binding).ttl(ANSWER_WITHIN);
        let state = self
            .shared
            .codec
            .seal_json_with(&json!({ "asked": ["region"] }), &options)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let question = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Which region should the database live in?".to_owned(),
            requested_schema: self.shared.region.clone(),
        };
        let mut asks = InputRequests::new();
        asks.insert("region".to_owned(), InputRequest::Elicitation(ElicitRequest::new(question)));
        Ok(InputRequiredResult::new(Some(asks), Some(state)).into())
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let Shared { tools, places, .. } = &*self.shared;
        places.get(name).and_then(|place| tools.get(*place)).cloned()
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shared.tools.clone()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match call.name.as_ref() {
            "echo" => Ok(text_result(string_argument(&call, "text")?)),
            "provision" | "provision_by_hand" => self.provision(&call),
            "progress" => progress(&context).await,
            "text" => Ok(text_result(string_argument(&call, "text")?.len().to_string())),
            "records" => records(call),
            name if self.shared.places.contains_key(name) => Ok(text_result(string_argument(&call, "text")?)),
            other => Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        }
    }
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let token = context.meta.get_progress_token();
    let token = token.ok_or_else(|| ErrorData::invalid_params("no progressToken", None))?;
    for step in 1..=NOTIFICATIONS {
        let params = ProgressNotificationParam::new(token.clone(), f64::from(step))
            .with_total(f64::from(NOTIFICATIONS))
            .with_message("working");
        let sent = context.peer.notify_progress(params).await;
        sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        tokio::task::yield_now().await;
    }
    Ok(text_result("done"))
}

fn records(call: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let arguments = Value::Object(call.arguments.unwrap_or_default());
    let Records { records } = serde_json::from_value(arguments)
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    let sum: u64 = records.iter().map(|record| record.id).sum();
    let named = records.iter().filter(|record| !record.name.is_empty()).count();
    let tags: usize = records.iter().map(|record| record.tags.len()).sum();
    Ok(text_result(format!("{named} records, {tags} tags, sum {sum}")))
}

/// The bytes that the state is bound to: this method, this tool, these arguments.
fn binding(call: &CallToolRequestParams) -> Result<Vec<u8>, ErrorData> {
    let mut bytes = format!("tools/call\0{}\0", call.name).into_bytes();
    serde_json::to_writer(&mut bytes, &call.arguments)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(bytes)
}

fn string_argument<'a>(call: &'a CallToolRequestParams, name: &str) -> Result<&'a str, ErrorData> {
    call.arguments
        .as_ref()
        .and_then(|arguments| arguments.get(name))
        .and_then(Value::as_str)
        .ok_or_else(|| ErrorData::invalid_params(format!("{name} must be a string"), None))
}

fn text_result(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// The schema of an object with this one member, which is required.
fn one(name: &str, schema: Value) -> JsonObject {
    let mut object = JsonObject::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), json!({ name: schema }));
    object.insert("required".to_owned(), json!([name]));
    object
}

fn records_schema() -> Value {
    let record = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer", "minimum": 0 },
            "name": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } }
        },
        "required": ["id", "name", "tags"]
    });
    json!({ "type": "array", "items": record })
}
