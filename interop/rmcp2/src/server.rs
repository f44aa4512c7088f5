//! The server's handler, without rmcp's macros, because the lists come from tables.

use crate::{
    asks::{Answer, Asker, read},
    offers,
};
#[cfg(feature = "of-2026")]
use rmcp::model::{CallToolResponse, GetPromptResponse, ReadResourceResponse};
#[cfg(not(feature = "of-2026"))]
use rmcp::model::{
    CallToolResult as CallToolResponse, GetPromptResult as GetPromptResponse,
    ReadResourceResult as ReadResourceResponse,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, ErrorCode, GetPromptRequestParams,
        GetPromptResult, ListPromptsResult, ListResourceTemplatesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResult, ServerInfo,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

type ToolText = Result<String, ErrorData>;

/// The server. Clones share the set of visited pages.
#[derive(Clone)]
pub(crate) struct Peer {
    minimal: bool,
    visited: Arc<Mutex<HashSet<String>>>,
}

impl Peer {
    pub(crate) fn new(minimal: bool) -> Self {
        Self { minimal, visited: Arc::default() }
    }

    async fn call(&self, name: &str, arguments: &Value, client: &Asker) -> ToolText {
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
        match name {
            "echo" => Ok(argument("text").to_owned()),
            "refuse" => Err(ErrorData::new(ErrorCode(1000), "No tea here", Some(json!({"kind": "teapot"})))),
            "must_visit" => self.must_visit(argument("page")),
            "confirm" => confirm(client).await,
            "two_forms" => two_forms(client).await,
            "side_by_side" => side_by_side(client).await,
            "visit" => visit(argument("page"), client).await,
            "sample" => Ok(format!("the model said: {}", client.sample(argument("prompt")).await?)),
            "roots" => Ok(format!("roots: {}", client.roots().await?.join(", "))),
            "count" => count(arguments["to"].as_u64().unwrap_or_default(), client).await,
            other => Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        }
    }

    fn must_visit(&self, page: &str) -> ToolText {
        let mut visited = self.visited.lock().unwrap_or_else(PoisonError::into_inner);
        if !visited.insert(page.to_owned()) {
            return Ok(format!("{page} was visited."));
        }
        let data = json!({"elicitations": [offers::url_ask(page)]});
        Err(ErrorData::new(ErrorCode(-32042), "URL elicitation required", Some(data)))
    }
}

async fn confirm(client: &Asker) -> ToolText {
    Ok(match client.form("Go on?", "ok", "boolean").await? {
        Ok(reply) => format!("confirmed: {reply}"),
        Err(action) => format!("not confirmed: {action}"),
    })
}

async fn two_forms(client: &Asker) -> ToolText {
    let name = match client.form("What is your name?", "name", "string").await? {
        Ok(name) => name,
        Err(action) => return Ok(format!("no name: {action}")),
    };
    Ok(match client.form(&format!("Which colour, {name}?"), "colour", "string").await? {
        Ok(colour) => format!("{name} likes {colour}."),
        Err(action) => format!("no colour for {name}: {action}"),
    })
}

async fn side_by_side(client: &Asker) -> ToolText {
    let (left, right) =
        tokio::join!(client.form("Left?", "name", "string"), client.form("Right?", "colour", "string"));
    let word = |answer: Answer| answer.unwrap_or_else(|action| action);
    Ok(format!("left {}, right {}", word(left?), word(right?)))
}

async fn visit(page: &str, client: &Asker) -> ToolText {
    let reply = client.elicit(offers::url_ask(page)).await?;
    let action = reply["action"].as_str().unwrap_or_default();
    if action == "accept" {
        client.complete(&format!("id-{page}")).await?;
    }
    Ok(format!("visit: {action}"))
}

async fn count(to: u64, client: &Asker) -> ToolText {
    for at in 1..=to {
        client.report(at, to).await?;
        client.log(&format!("counted {at}")).await?;
    }
    Ok(format!("counted to {to}"))
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerInfo {
        let capabilities = match self.minimal {
            true => json!({"tools": {}}),
            false => json!({"logging": {}, "prompts": {}, "resources": {}, "tools": {}}),
        };
        let mut info = ServerInfo::default();
        // This JSON always parses.
        info.capabilities = serde_json::from_value(capabilities).unwrap_or_default();
        info.server_info.name = "rmcp-peer".to_owned();
        info.server_info.version = "1.0.0".to_owned();
        info
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        read(json!({"tools": offers::tools(self.minimal)}))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = json!(call.arguments);
        if call.name == "fail" {
            let reason = arguments["reason"].as_str().unwrap_or_default();
            return Ok(CallToolResult::error(vec![ContentBlock::text(reason)]).into());
        }
        let reply = self.call(&call.name, &arguments, &Asker(context)).await?;
        Ok(CallToolResult::success(vec![ContentBlock::text(reply)]).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        read(json!({"prompts": offers::prompts()}))
    }

    async fn get_prompt(
        &self,
        _asked: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = match Asker(context).form("Whom do I greet?", "name", "string").await? {
            Ok(name) => format!("Greet {name}."),
            Err(action) => format!("Greet nobody: {action}."),
        };
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        let result: GetPromptResult = read(json!({"messages": [message]}))?;
        Ok(result.into())
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        read(json!({"resourceTemplates": offers::templates()}))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let day = asked.uri.strip_prefix("note://").unwrap_or_default();
        let question = format!("Who reads the note of {day}?");
        let text = match Asker(context).form(&question, "name", "string").await? {
            Ok(name) => format!("The note of {day} for {name}."),
            Err(action) => format!("No note: {action}."),
        };
        let content = json!({"uri": asked.uri, "mimeType": "text/plain", "text": text});
        let result: ReadResourceResult = read(json!({"contents": [content]}))?;
        Ok(result.into())
    }
}
