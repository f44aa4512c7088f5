//! What is known of the server's tools from their list: which arguments are repeated in headers, and what results must
//! look like.

use crate::{
    Inner,
    cache::{Generation, Key},
    call::Call,
    client_error::ClientErrorKind,
    fault::RequestFault,
    lists::Source,
};
use antiphon_schema::CompiledSchema;
use antiphon_wire::{
    CallToolResult, JsonSchema, ListToolsResult, Tool, header::params::ParamHeaders, method,
};
use serde_json::{Value, value::RawValue};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio::time::timeout;

/// How many tools are remembered. A list that is longer is given back whole all the same.
const MAX_TOOLS: usize = 8192;
/// How many bytes of output schemas are remembered.
const MAX_SCHEMAS: usize = 16 * 1024 * 1024;

/// The tools of the latest list, as far as calls need them.
#[derive(Default)]
pub(crate) struct KnownTools(Mutex<Option<Listed>>);

struct Listed {
    /// Of the list; knowledge of another one is not used any more.
    generation: Generation,
    tools: HashMap<String, Arc<KnownTool>>,
}

/// What calls of one tool need to know.
#[derive(Debug, Default)]
pub(crate) struct KnownTool {
    headers: Option<ParamHeaders>,
    output: Option<Arc<Output>>,
}

/// An output schema, compiled when it is first needed.
#[derive(Debug)]
struct Output {
    schema: JsonSchema,
    compiled: OnceLock<Result<CompiledSchema, String>>,
}

impl Output {
    fn compiled(&self) -> Result<&CompiledSchema, String> {
        let compile = || CompiledSchema::compile(&self.schema.to_value()).map_err(|fault| fault.to_string());
        self.compiled.get_or_init(compile).as_ref().map_err(Clone::clone)
    }

    /// What is wrong with the result, if anything.
    ///
    /// > Servers **MUST** provide structured results that conform to this schema.
    fn faults(&self, result: &CallToolResult) -> Option<String> {
        let compiled = match self.compiled() {
            Ok(compiled) => compiled,
            Err(reason) => return Some(format!("its schema cannot be used: {reason}")),
        };
        match &result.structured_content {
            None => Some("it has no structuredContent".into()),
            Some(content) => compiled.faults(content),
        }
    }
}

impl KnownTools {
    fn listed(&self) -> MutexGuard<'_, Option<Listed>> {
        // Replaced as a whole: a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, name: &str, generation: Generation) -> Option<Arc<KnownTool>> {
        let listed = self.listed();
        let listed = listed.as_ref().filter(|listed| listed.generation == generation)?;
        listed.tools.get(name).cloned()
    }

    /// Remembers a whole list. What was compiled for the list before is kept where the schema is the same text.
    fn learn(&self, generation: Generation, list: &[(Tool, Option<ParamHeaders>)]) {
        let before = |name: &str| self.listed().as_ref()?.tools.get(name)?.output.clone();
        let (mut tools, mut bytes) = (HashMap::new(), 0);
        for (tool, headers) in list {
            if headers.is_none() && tool.output_schema.is_none() {
                continue;
            }
            bytes += tool.output_schema.as_ref().map_or(0, |schema| schema.text().len());
            if tools.len() >= MAX_TOOLS || bytes > MAX_SCHEMAS {
                tracing::warn!("the server lists too many tools: the rest is called unchecked");
                break;
            }
            let output = tool.output_schema.as_ref().map(|schema| {
                let known = before(&tool.name).filter(|output| output.schema.text() == schema.text());
                known
                    .unwrap_or_else(|| Arc::new(Output { schema: schema.clone(), compiled: OnceLock::new() }))
            });
            let known = KnownTool { headers: headers.clone(), output };
            tools.insert(tool.name.clone(), Arc::new(known));
        }
        *self.listed() = Some(Listed { generation, tools });
    }
}

impl Inner {
    /// Every tool that can be called, page after page.
    pub(crate) async fn tools(&self, from: Source) -> Result<Vec<Tool>, ClientErrorKind> {
        let generation = self.cache.generation(&Key::Page(method::TOOLS_LIST, None));
        let list =
            self.pages(method::TOOLS_LIST, from, |page: ListToolsResult| (page.tools, page.next_cursor));
        let (tools, fetched) = list.await?;
        let list: Vec<(Tool, Option<ParamHeaders>)> = if self.transport.mirrors_parameters() {
            tools.into_iter().filter_map(|tool| with_headers(tool, fetched)).collect()
        } else {
            tools.into_iter().map(|tool| (tool, None)).collect()
        };
        self.cache.tools.learn(generation, &list);
        Ok(list.into_iter().map(|(tool, _)| tool).collect())
    }

    /// What is known of a tool without asking.
    pub(crate) fn known_tool(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.cache.tools.get(name, self.cache.generation(&Key::Page(method::TOOLS_LIST, None)))
    }

    /// What the server says of a tool now, in the time of one request; none if it cannot be called any more, or nobody
    /// can tell.
    pub(crate) async fn relisted_tool(&self, name: &str) -> Option<Arc<KnownTool>> {
        // Page after page, a server could hold up a call for very long.
        let listing = timeout(self.bounds.leg_timeout, self.tools(Source::Server));
        let Ok(Ok(tools)) = listing.await else {
            tracing::debug!("the tools cannot be listed again");
            return None;
        };
        let listed = tools.iter().any(|tool| tool.name == name);
        listed.then(|| self.known_tool(name).unwrap_or_default())
    }

    /// The headers that repeat arguments of this call.
    ///
    /// > conforming clients **MUST** mirror the designated parameter values into HTTP headers.
    ///
    /// A tool whose output schema cannot be used is not called at all: its result could not be trusted.
    ///
    /// > Schemas that fail to validate due to an unresolved external `$ref` **SHOULD** be rejected rather than silently
    /// > treated as permissive.
    pub(crate) fn prepare(
        &self,
        call: &Call,
        tool: Option<&KnownTool>,
    ) -> Result<Vec<(String, String)>, RequestFault> {
        let Some(tool) = tool else { return Ok(Vec::new()) };
        if let Some(output) = tool.output.as_ref().filter(|_| self.checks_output)
            && let Err(reason) = output.compiled()
        {
            return Err(RequestFault::UnusableOutputSchema { tool: call.name().to_owned(), reason });
        }
        let (Some(headers), Some(arguments)) = (&tool.headers, call.arguments()) else {
            return Ok(Vec::new());
        };
        let arguments: Value =
            serde_json::from_str(RawValue::get(arguments)).map_err(RequestFault::Unwritable)?;
        Ok(headers.mirror(&arguments))
    }

    /// Compares a final result with the tool's output schema.
    ///
    /// > Clients **SHOULD** validate structured results against this schema.
    ///
    /// If it does not fit, the schema may have changed meanwhile: the tools are listed again before the server is
    /// blamed.
    pub(crate) async fn check_output(
        &self,
        call: &Call,
        tool: Option<&KnownTool>,
        result: &CallToolResult,
    ) -> Result<(), RequestFault> {
        let Some(output) = tool.and_then(|tool| tool.output.as_ref()) else { return Ok(()) };
        if result.failed() || !self.checks_output {
            return Ok(());
        }
        let Some(mut faults) = output.faults(result) else { return Ok(()) };
        if let Some(now) = self.relisted_tool(call.name()).await {
            match &now.output {
                Some(now) if now.schema.text() == output.schema.text() => {}
                now => match now.as_ref().and_then(|now| now.faults(result)) {
                    Some(still) => faults = still,
                    None => return Ok(()),
                },
            }
        }
        let (tool, result) = (call.name().to_owned(), Box::new(result.clone()));
        Err(RequestFault::OutputSchema { tool, faults, result })
    }
}

/// The tool with its headers; none if it must not be offered.
///
/// > Clients using the Streamable HTTP transport **MUST** reject tool definitions where any `x-mcp-header` value
/// > violates these constraints. Rejection means the client **MUST** exclude the invalid tool from the result of
/// > `tools/list`. Clients **SHOULD** log a warning when rejecting a tool definition, including the tool name and the
/// > reason for rejection.
fn with_headers(tool: Tool, warn: bool) -> Option<(Tool, Option<ParamHeaders>)> {
    match ParamHeaders::of(&tool.input_schema.to_value()) {
        Ok(headers) => Some((tool, Some(headers).filter(|headers| !headers.is_empty()))),
        Err(fault) => {
            if warn {
                let name: String = tool.name.chars().take(128).collect();
                tracing::warn!(tool = %name, reason = %fault, "a tool of the server is left out");
            }
            None
        }
    }
}
