//! The data of the server's tools from their list: the arguments that headers repeat, and the output schemas.

use crate::{
    cache::{Generation, Key},
    lists::{ListFault, ServerLists, Source},
    request::fault::RequestFault,
};
#[cfg(feature = "schema")]
use antiphon_schema::CompiledSchema;
use antiphon_wire::{
    CallToolResult, ForeignText, JsonSchema, ListToolsResult, TaskSupport, Tool, escaped,
    header::params::ParamHeaders, lock::Lock, method,
};
use serde_json::{Map, Value, value::RawValue};
use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard, OnceLock},
};
use tokio::time::timeout;

/// The maximum number of tools that are stored. A longer list is still returned completely.
const MAX_TOOLS: usize = 8192;
/// The maximum size of the output schemas that are stored, in bytes.
const MAX_SCHEMAS: usize = 16 * 1024 * 1024;

/// The tools of the latest list, as far as calls need them.
#[derive(Default)]
pub(crate) struct KnownTools(Lock<Option<ToolList>>);

struct ToolList {
    /// The generation of the list. Data of another generation is not used.
    generation: Generation,
    tools: HashMap<String, Arc<KnownTool>>,
}

/// The data that calls of one tool need.
#[derive(Debug, Default)]
pub(crate) struct KnownTool {
    headers: Option<ParamHeaders>,
    output: Option<Arc<Output>>,
    /// The support for tasks of the forms in which the client decides; none if the list does not say it.
    tasks: Option<TaskSupport>,
}

impl KnownTool {
    /// The support for tasks of the forms in which the client decides; none if the list does not say it.
    pub(crate) fn task_support(&self) -> Option<TaskSupport> {
        self.tasks
    }
}

/// An output schema, compiled when it is first needed.
#[derive(Debug)]
struct Output {
    schema: JsonSchema,
    compiled: OnceLock<Option<CompiledSchema>>,
}

/// The place of the validator in a build without feature `schema`: every structured result fits.
#[cfg(not(feature = "schema"))]
#[derive(Debug)]
struct CompiledSchema;

#[cfg(not(feature = "schema"))]
impl CompiledSchema {
    fn compile(_: &Value) -> Result<Self, std::convert::Infallible> {
        Ok(Self)
    }

    fn faults(&self, _: &Value) -> Option<String> {
        None
    }
}

impl Output {
    /// The compiled schema; none if it cannot be used, which is logged once.
    ///
    /// > Schemas that fail to validate due to an unresolved external `$ref` **SHOULD** be rejected rather than silently
    /// > treated as permissive.
    ///
    /// The schema is rejected, but not the tool: a result that was not checked is better than a tool that cannot be called.
    fn compiled(&self, tool: &str) -> Option<&CompiledSchema> {
        let compile = || match CompiledSchema::compile(&self.schema.to_value()) {
            Ok(compiled) => Some(compiled),
            Err(reason) => {
                let reason = ForeignText::new(reason.to_string());
                tracing::warn!(tool = %escaped(tool), %reason, "an output schema cannot be used: results are not checked");
                None
            }
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    /// The faults of a result, if it has any.
    ///
    /// > Servers **MUST** provide structured results that conform to this schema.
    fn faults(&self, tool: &str, result: &CallToolResult) -> Option<String> {
        let compiled = self.compiled(tool)?;
        match &result.structured_content {
            None => Some("it has no structuredContent".into()),
            // In PHP, an empty array is also an object without members.
            Some(Value::Array(none)) if none.is_empty() => compiled
                .faults(&Value::Array(Vec::new()))
                .filter(|_| compiled.faults(&Value::Object(Map::new())).is_some()),
            Some(content) => compiled.faults(content),
        }
    }
}

impl KnownTools {
    fn listed(&self) -> MutexGuard<'_, Option<ToolList>> {
        self.0.lock()
    }

    fn get(&self, name: &str, generation: Generation) -> Option<Arc<KnownTool>> {
        let listed = self.listed();
        let listed = listed.as_ref().filter(|listed| listed.generation == generation)?;
        listed.tools.get(name).cloned()
    }

    /// Stores a complete list. Schemas that were compiled for the previous list are kept if their text is the same.
    fn learn(&self, generation: Generation, list: &[(Tool, Option<ParamHeaders>)]) {
        let before = |name: &str| self.listed().as_ref()?.tools.get(name)?.output.clone();
        let (mut tools, mut bytes) = (HashMap::new(), 0);
        for (tool, headers) in list {
            let tasks = tool.extra.contains_key("execution").then(|| tool.task_support());
            if headers.is_none() && tool.output_schema.is_none() && tasks.is_none() {
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
            let known = KnownTool { headers: headers.clone(), output, tasks };
            tools.insert(tool.name.clone(), Arc::new(known));
        }
        *self.listed() = Some(ToolList { generation, tools });
    }
}

/// The lists of a server, and the data of its tools from these lists.
pub(crate) struct ServerTools {
    pub(crate) lists: ServerLists,
    known: KnownTools,
    /// `true` if results are compared with output schemas.
    checks_output: bool,
}

impl ServerTools {
    pub(crate) fn new(lists: ServerLists, checks_output: bool) -> Self {
        Self { lists, known: KnownTools::default(), checks_output }
    }

    fn generation(&self) -> Generation {
        self.lists.cache().generation(&Key::Page(method::TOOLS_LIST, None))
    }

    /// Every tool that can be called, page after page.
    pub(crate) async fn list(&self, from: Source) -> Result<Vec<Tool>, ListFault> {
        let generation = self.generation();
        let list = self
            .lists
            .pages(method::TOOLS_LIST, from, |page: ListToolsResult| (page.tools, page.next_cursor));
        let (tools, fetched) = list.await?;
        let list: Vec<(Tool, Option<ParamHeaders>)> = if self.mirrors_parameters() {
            tools.into_iter().filter_map(|tool| with_headers(tool, fetched)).collect()
        } else {
            tools.into_iter().map(|tool| (tool, None)).collect()
        };
        self.known.learn(generation, &list);
        Ok(list.into_iter().map(|(tool, _)| tool).collect())
    }

    /// Returns `true` if the transport repeats arguments in headers.
    pub(crate) fn mirrors_parameters(&self) -> bool {
        self.lists.connection.transport.mirrors_parameters()
    }

    /// Returns the data of a tool from the latest list. Sends nothing.
    pub(crate) fn known_tool(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.known.get(name, self.generation())
    }

    /// Returns `true` if the latest list of tools was read and is still valid. Sends nothing.
    pub(crate) fn has_list(&self) -> bool {
        let generation = self.generation();
        self.known.listed().as_ref().is_some_and(|listed| listed.generation == generation)
    }

    /// Lists the tools again, within the time limit of one request, and returns the data of this tool. None if the tool is not in
    /// the list any more, or the list cannot be read.
    pub(crate) async fn relisted_tool(&self, name: &str) -> Option<Arc<KnownTool>> {
        // Without this limit, a server with many pages could delay a call for very long.
        let listing = timeout(self.lists.connection.core.bounds.leg_timeout, self.list(Source::Server));
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
    pub(crate) fn prepare(
        &self,
        arguments: Option<&RawValue>,
        tool: Option<&KnownTool>,
    ) -> Result<Vec<(String, String)>, RequestFault> {
        let Some(tool) = tool else { return Ok(Vec::new()) };
        let (Some(headers), Some(arguments)) = (&tool.headers, arguments) else {
            return Ok(Vec::new());
        };
        let arguments: Value = serde_json::from_str(arguments.get()).map_err(RequestFault::Unwritable)?;
        Ok(headers.mirror(&arguments))
    }

    /// Compares a final result with the tool's output schema.
    ///
    /// > Clients **SHOULD** validate structured results against this schema.
    ///
    /// If the result does not fit, the schema may have changed meanwhile: the tools are listed again before an error is returned.
    pub(crate) async fn check_output(
        &self,
        name: &str,
        tool: Option<&KnownTool>,
        result: &CallToolResult,
    ) -> Result<(), RequestFault> {
        let Some(output) = tool.and_then(|tool| tool.output.as_ref()) else { return Ok(()) };
        if result.failed() || !self.checks_output {
            return Ok(());
        }
        let Some(mut faults) = output.faults(name, result) else { return Ok(()) };
        if let Some(now) = self.relisted_tool(name).await {
            match &now.output {
                Some(now) if now.schema.text() == output.schema.text() => {}
                now => match now.as_ref().and_then(|now| now.faults(name, result)) {
                    Some(still) => faults = still,
                    None => return Ok(()),
                },
            }
        }
        let (tool, result) = (name.to_owned(), Box::new(result.clone()));
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
                tracing::warn!(tool = %escaped(&tool.name), reason = %escaped(&fault), "a tool of the server is left out");
            }
            None
        }
    }
}
