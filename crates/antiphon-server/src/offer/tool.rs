//! Tools: a name, a schema, which is compiled once, and a plain async function.

use crate::{
    call::{
        DriveResult,
        ctx::Ctx,
        drive,
        handler::{Handler, IntoOutcome, schema_of_result},
    },
    errors::BuildError,
    in_place::boxed,
    offer::{
        PerCaller,
        check::{InputCheck, OutputCheck, SchemaOrigin, advertised},
        per_caller_setters,
    },
    options::{self, Settings, TaskMode},
};
use antiphon_store::BlobDigest;
use antiphon_wire::{
    CallToolResult, JsonSchema, ToolAnnotations, arguments::decode, header::params::ParamHeaders, lock::Lock,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema as HasSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{collections::HashMap, fmt, pin::pin, sync::Arc};

/// Runs the handler on the text of the arguments.
pub(crate) type RunTool = dyn Fn(Ctx, &str) -> Result<BoxFuture<'static, DriveResult<CallToolResult>>, serde_json::Error>
    + Send
    + Sync;

/// A tool, registered with [`ServerBuilder::tool`](crate::ServerBuilder::tool).
pub struct Tool {
    pub(crate) definition: antiphon_wire::Tool,
    pub(crate) schema: Value,
    pub(crate) schema_origin: SchemaOrigin,
    pub(crate) output: Option<(Value, SchemaOrigin)>,
    pub(crate) settings: Settings,
    pub(crate) per_caller: PerCaller<antiphon_wire::Tool>,
    pub(crate) run: Box<RunTool>,
}

/// The arguments of a tool without arguments.
#[derive(Clone, Copy, Debug, Default, Deserialize, HasSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

impl Tool {
    /// Returns a tool that runs `handler`. Its input schema is that of `A`, an object; arguments are checked against
    /// the schema and decoded before the handler runs.
    ///
    /// ```
    /// use antiphon::server::{Ctx, Tool};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Echo {
    ///     /// What to say back.
    ///     text: String,
    /// }
    ///
    /// async fn echo(_ctx: &Ctx, args: Echo) -> String {
    ///     args.text
    /// }
    ///
    /// let tool = Tool::new("echo", echo).description("Says the text back.");
    /// ```
    ///
    /// A value, such as a connection pool, comes from [`with_state`](crate::with_state): an async closure that captures it is no
    /// handler, and the compiler then says that the closure does not implement `Fn`.
    ///
    /// An argument for proxies, which do not read the body, is marked with `#[schemars(extend("x-mcp-header" =
    /// "Region"))]`: over HTTP, clients repeat it in the header `Mcp-Param-Region`, and a call in which the two differ
    /// is refused. Its type must be a string, an integer or a boolean, or an `Option` of these.
    ///
    /// > Server developers **SHOULD NOT** mark sensitive parameters (passwords, API keys, tokens, PII) with
    /// > `x-mcp-header`, as header values are visible to network intermediaries.
    pub fn new<A, F, R>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + HasSchema + Send + 'static,
        F: for<'a> Handler<'a, (A,), Output = R>,
        R: IntoOutcome<CallToolResult>,
    {
        let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<A>();
        // The name of a Rust type is not a useful title.
        schema.remove("title");
        let mut tool = Self::with_schema(name, schema.to_value(), handler);
        tool.schema_origin = SchemaOrigin::Type;
        tool.definition.input_schema = JsonSchema::from_value(&advertised(&tool.schema));
        tool
    }

    /// Returns a tool with an input schema written by hand: JSON Schema of the dialect that `$schema` names (2020-12,
    /// 2019-09, draft-07, draft-06 or draft-04). Default: 2020-12. The handler takes any type that decodes from valid
    /// arguments, such as a [`serde_json::Map`]. A `$ref` cannot leave the schema. Regular expressions with look-around or back
    /// references are listed, but arguments are not checked by them: a warning at `build` names each. Where the schema cannot do
    /// without one (inside of `not`, `if`, `oneOf`), the server does not build.
    ///
    /// The tool needs the feature `schema`: without the feature, the server does not build.
    pub fn with_schema<A, F, R>(name: impl Into<String>, schema: Value, handler: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        F: for<'a> Handler<'a, (A,), Output = R>,
        R: IntoOutcome<CallToolResult>,
    {
        let handler = Arc::new(handler);
        let run = move |ctx: Ctx, arguments: &str| {
            let arguments: A = decode(arguments)?;
            let handler = Arc::clone(&handler);
            let future: BoxFuture<'static, _> =
                Box::into_pin(boxed(
                    || async move { drive(&ctx, pin!(handler.call(&ctx, (arguments,)))).await },
                ));
            Ok(future)
        };
        let advertised = JsonSchema::from_value(&schema);
        Self::from_parts(name, schema, SchemaOrigin::Author, advertised, Box::new(run))
    }

    /// Returns a tool with the parts that were made from its handler: `schema` is checked, and `advertised` is listed.
    pub(crate) fn from_parts(
        name: impl Into<String>,
        schema: Value,
        schema_origin: SchemaOrigin,
        advertised: JsonSchema,
        run: Box<RunTool>,
    ) -> Self {
        let definition = antiphon_wire::Tool::new(name, advertised);
        Self {
            definition,
            schema,
            schema_origin,
            output: None,
            settings: Settings::default(),
            per_caller: PerCaller::default(),
            run,
        }
    }

    /// Sets the description of the tool, for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Sets the hints about the tool's behaviour.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Sets the schema of the structured result: a JSON Schema object of the dialect that `$schema` names. Default:
    /// 2020-12. The result may be any JSON value.
    ///
    /// > Servers **MUST** provide structured results that conform to this schema.
    ///
    /// A result that does not conform, or has no `structuredContent`, is logged, and the call fails. Results with
    /// `isError` are not checked.
    #[must_use]
    pub fn output_schema(self, schema: &Value) -> Self {
        self.with_output(schema, SchemaOrigin::Author)
    }

    pub(crate) fn with_output(mut self, schema: &Value, origin: SchemaOrigin) -> Self {
        self.definition.output_schema = Some(match origin {
            SchemaOrigin::Type => JsonSchema::from_value(&advertised(schema)),
            SchemaOrigin::Author => JsonSchema::from_value(schema),
        });
        self.output = Some((schema.clone(), origin));
        self
    }

    /// Sets whether calls become tasks. Default: [`TaskMode::Never`].
    #[must_use]
    pub fn task(mut self, mode: TaskMode) -> Self {
        self.settings.task = mode;
        self
    }

    /// Sets the time after which a call of an optional task becomes a task by itself: at its next await at which no step runs.
    /// Work since the last step or question that is not a step runs again in the task. Default: never.
    #[must_use]
    pub fn promote_after(mut self, time: std::time::Duration) -> Self {
        self.settings.promote_after = Some(time);
        self
    }

    /// Sets the schema of the structured result to that of a serialized `T`: for a handler that returns
    /// [`Json<T>`](crate::Json). See [`output_schema`](Self::output_schema).
    #[must_use]
    pub fn returns<T: HasSchema>(self) -> Self {
        self.with_output(&schema_of_result::<T>(), SchemaOrigin::Type)
    }
}

options::setters!(Tool);
options::definition_setters!(Tool);
per_caller_setters!(Tool, "The name and the schemas");

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

/// The compiled schemas of a tool, and its headers.
pub(crate) struct ToolChecks {
    pub(crate) input: InputCheck,
    pub(crate) output: Option<OutputCheck>,
    pub(crate) param_headers: ParamHeaders,
}

impl ToolChecks {
    /// # Errors
    /// If a schema is not valid, or needs the validator in a build without feature `schema`.
    pub(crate) fn new(tool: &Tool) -> Result<Self, BuildError> {
        let name = &tool.definition.name;
        let input = InputCheck::new(name, &tool.schema, tool.schema_origin)?;
        // Taken from the advertised schema, which omits some `null`s of the checked schema.
        let param_headers = ParamHeaders::of(&tool.definition.input_schema.to_value())
            .map_err(|fault| BuildError(format!("the input schema of the tool `{name}`: {fault}")))?;
        let check = |(schema, origin): &(Value, SchemaOrigin)| OutputCheck::new(name, schema, *origin);
        let output = tool.output.as_ref().map(check).transpose()?;
        Ok(Self { input, output, param_headers })
    }
}

/// The checks of tools that are found at run time, by their schemas: a tool is found for each list and each call, and its schemas are
/// compiled once.
#[derive(Default)]
pub(crate) struct KnownChecks(Lock<KnownByDigest>);

#[derive(Default)]
struct KnownByDigest {
    checks: HashMap<BlobDigest, Arc<ToolChecks>>,
    /// The bytes of their schemas.
    bytes: usize,
}

/// The maximum number of tools whose checks are kept, and the maximum bytes of their schemas. Beyond it, all are compiled again.
const KNOWN: usize = 1024;
const KNOWN_BYTES: usize = 8 << 20;

impl KnownChecks {
    /// # Errors
    /// As [`ToolChecks::new`].
    pub(crate) fn of(&self, tool: &Tool) -> Result<Arc<ToolChecks>, BuildError> {
        let output = tool.output.as_ref().map(|(schema, origin)| (schema.to_string(), origin));
        let advertised = tool.definition.input_schema.text();
        let schemas = format!("{:?}", (tool.schema.to_string(), tool.schema_origin, output, advertised));
        let key = BlobDigest::of(schemas.as_bytes());
        if let Some(known) = self.0.lock().checks.get(&key) {
            return Ok(Arc::clone(known));
        }
        // Outside of the lock: to compile takes long.
        let checks = Arc::new(ToolChecks::new(tool)?);
        let mut known = self.0.lock();
        if known.checks.len() >= KNOWN || known.bytes + schemas.len() > KNOWN_BYTES {
            *known = KnownByDigest::default();
        }
        known.bytes += schemas.len();
        known.checks.insert(key, Arc::clone(&checks));
        Ok(checks)
    }
}
