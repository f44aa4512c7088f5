//! `echo` and `provision`, the input-required flow written by hand as rmcp asks for.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, JsonObject,
    ListToolsResult, PaginatedRequestParams, RequestStateCodec, SealOptions, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

/// The maximum time for an answer.
const ANSWER_WITHIN: Duration = Duration::from_mins(10);
/// Fine for a benchmark on loopback, for nothing else.
const KEY: &[u8; 32] = b"a key for this benchmark, only.!";

/// The demo server: its tool table and the codec for its request state.
#[derive(Clone)]
pub(crate) struct DemoTools {
    shared: Arc<Shared>,
}

struct Shared {
    echo: Tool,
    provision: Tool,
    region: ElicitationSchema,
    codec: RequestStateCodec,
}

impl DemoTools {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let region = ElicitationSchema::builder().required_string("region").build()?;
        let shared = Shared {
            echo: Tool::new("echo", "Say it back.", one_string("text")),
            provision: Tool::new("provision", "Order a database.", one_string("name")),
            region,
            codec: RequestStateCodec::try_new(KEY.as_slice())?,
        };
        Ok(Self { shared: Arc::new(shared) })
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
            return Ok(said("Nothing was provisioned."));
        }
        match answer["content"]["region"].as_str() {
            Some(region) => Ok(said(format!("Provisioned {name:?} in {region}."))),
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

impl ServerHandler for DemoTools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        match name {
            "echo" => Some(self.shared.echo.clone()),
            "provision" => Some(self.shared.provision.clone()),
            _ => None,
        }
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = vec![self.shared.echo.clone(), self.shared.provision.clone()];
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match call.name.as_ref() {
            "echo" => Ok(said(string_argument(&call, "text")?)),
            "provision" => self.provision(&call),
            other => Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        }
    }
}

/// The values that the state is bound to: the method, the tool and the arguments.
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

fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn one_string(name: &str) -> JsonObject {
    let mut properties = JsonObject::new();
    properties.insert(name.to_owned(), json!({ "type": "string" }));
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), json!([name]));
    schema
}
