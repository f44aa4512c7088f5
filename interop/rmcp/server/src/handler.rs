//! The handler: rmcp's macros for some tools and a prompt, and code without macros for prompts and resources that ask,
//! because rmcp's macros cannot pass answers to them.

use crate::{
    asks::{HandlerResult, Leg, Reply, internal, round, text_form},
    hand, tables, tasks,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::{
        prompt::PromptContext,
        router::{prompt::PromptRouter, tool::ToolRouter},
        tool::ToolCallContext,
    },
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult,
        Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, PromptMessage, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, RequestStateCodec, ResourceContents, Role, SealOptions,
        ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
    },
    service::RequestContext,
    task_manager::TaskManager,
};
use serde_json::json;
use std::{error::Error, sync::Arc, time::Duration};

/// A key for tests on the loopback interface only.
const KEY: &[u8; 32] = b"a key for interop tests alone, 1";
/// Lifetime of a sealed state.
const ANSWER_WITHIN: Duration = Duration::from_mins(10);

/// The server.
#[derive(Clone)]
pub(crate) struct Peer {
    router: ToolRouter<Self>,
    prompts: PromptRouter<Self>,
    codec: Arc<RequestStateCodec>,
    tasks: TaskManager,
}

impl Peer {
    pub(crate) fn new() -> Result<Self, Box<dyn Error + Send + Sync>> {
        let codec = Arc::new(RequestStateCodec::try_new(KEY.as_slice())?);
        let tasks = TaskManager::new();
        Ok(Self { router: Self::tool_router(), prompts: Self::prompt_router(), codec, tasks })
    }

    /// Asks with a state that rmcp seals. The state is bound to the tool and its arguments.
    fn provision(&self, leg: &Leg) -> HandlerResult {
        let name = leg.text("name")?;
        let binding = format!("tools/call\0provision\0{}", json!(leg.arguments));
        let Some(state) = &leg.state else {
            let options = SealOptions::new().associated_data(binding.as_bytes()).ttl(ANSWER_WITHIN);
            let state = self.codec.seal_json_with(&json!({"asked": "region"}), &options).map_err(internal)?;
            let ask = text_form("Which region should the database live in?", "region")?;
            return Ok(round([("region", ask)], Some(&state)));
        };
        let opened: Result<serde_json::Value, _> = self.codec.open_json_with(state, binding.as_bytes());
        if opened.is_err() {
            return Err(ErrorData::invalid_params("invalid requestState", None));
        }
        Ok(match leg.filled("region", "region") {
            None => return Err(ErrorData::invalid_params("the answer is missing", None)),
            Some(Ok(region)) => Reply::Text(format!("Provisioned {name} in {region}.")),
            Some(Err(action)) => Reply::Text(format!("Nothing was provisioned: {action}.")),
        })
    }

    /// Counts, with progress notifications if the request has a progress token.
    async fn count(&self, leg: &Leg, context: &RequestContext<RoleServer>, then_ask: bool) -> HandlerResult {
        let to = leg.number("to")?;
        if let Some(token) = context.meta.get_progress_token() {
            for at in 1..=to {
                let params = ProgressNotificationParam::new(token.clone(), at as f64).with_total(to as f64);
                context
                    .peer
                    .notify_progress(params.with_message(format!("at {at}")))
                    .await
                    .map_err(internal)?;
            }
        }
        Ok(match leg.filled("again", "again") {
            None if then_ask => round([("again", text_form("Count again?", "again")?)], Some("counted")),
            None => Reply::Text(format!("counted to {to}")),
            Some(Ok(again)) => Reply::Text(format!("counted twice to {to}, said {again}")),
            Some(Err(action)) => Reply::Text(format!("counted twice to {to}: {action}")),
        })
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rmcp-peer", "1.0.0"))
            .with_instructions("A peer for interoperability tests.")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.router.get(name).cloned().or_else(|| tables::tools().into_iter().find(|tool| tool.name == name))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            self.router.list_all().into_iter().chain(tables::tools()).collect(),
        ))
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = self.prompts.list_all().into_iter().chain(tables::prompts());
        Ok(ListPromptsResult::with_all_items(all.collect()))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(tables::resources()))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(tables::templates()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.router.has_route(&call.name) {
            return self.router.call(ToolCallContext::new(self, call, context)).await;
        }
        if let Some(created) = tasks::start(&self.tasks, &call.name) {
            return Ok(created.into());
        }
        let name = call.name;
        let leg = Leg {
            arguments: call.arguments.unwrap_or_default(),
            responses: call.input_responses,
            state: call.request_state,
        };
        let reply = match name.as_ref() {
            "provision" => self.provision(&leg),
            "count" => self.count(&leg, &context, false).await,
            "count_then_ask" => self.count(&leg, &context, true).await,
            other => hand::tool(other, &leg)
                .unwrap_or_else(|| Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None))),
        };
        Ok(match reply? {
            Reply::Text(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
            Reply::Tool(result) => result.into(),
            Reply::Ask(required) => required.into(),
        })
    }

    async fn get_task(
        &self,
        task: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&task.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        task: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&task.task_id, task.input_responses)
    }

    async fn cancel_task(
        &self,
        task: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&task.task_id)
    }

    async fn get_prompt(
        &self,
        get: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if self.prompts.has_route(&get.name) {
            return self.prompts.get_prompt(PromptContext::new(self, get.name, get.arguments, context)).await;
        }
        let leg = Leg {
            arguments: get.arguments.unwrap_or_default(),
            responses: get.input_responses,
            state: get.request_state,
        };
        match hand::prompt(&get.name, &leg) {
            None => Err(ErrorData::invalid_params(format!("Unknown prompt: {}", get.name), None)),
            Some(reply) => match reply? {
                Reply::Text(text) => {
                    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
                }
                Reply::Ask(required) => Ok(required.into()),
                Reply::Tool(_) => Err(internal("a prompt has no result of a tool")),
            },
        }
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let leg = Leg {
            arguments: serde_json::Map::new(),
            responses: read.input_responses,
            state: read.request_state,
        };
        match hand::resource(&read.uri, &leg) {
            None => Err(ErrorData::resource_not_found("Unknown resource", Some(json!({"uri": read.uri})))),
            Some(reply) => match reply? {
                Reply::Text(text) => {
                    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, read.uri)]).into())
                }
                Reply::Ask(required) => Ok(required.into()),
                Reply::Tool(_) => Err(internal("a resource has no result of a tool")),
            },
        }
    }
}
