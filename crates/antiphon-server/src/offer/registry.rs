//! What a server offers at one moment. A request takes one snapshot and keeps it to its end; a change makes another.

use crate::{
    BuildError, CacheHint, Prompt, Resource, ResourceTemplate, Tool,
    offer::list::{List, Listed},
    settings::Settings,
    subscribe::hub::ListKind,
};
use antiphon_schema::CompiledSchema;
use antiphon_wire::{
    CallToolResult, DiscoverResult, Implementation, InitializeResult, Meta, ProtocolVersion,
    ServerCapabilities, header::params::ParamHeaders, method,
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use std::sync::Arc;

/// Everything that may change while the server runs, and the discovery that follows from it.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) lists: Lists,
    pub(crate) offers: Offers,
    pub(crate) discover: Box<RawValue>,
    pub(crate) profile: Arc<Profile>,
}

#[derive(Clone, Debug)]
pub(crate) struct Lists {
    pub(crate) tools: Arc<List<RegisteredTool>>,
    pub(crate) prompts: Arc<List<Prompt>>,
    pub(crate) resources: Arc<List<Resource>>,
    pub(crate) templates: Arc<List<ResourceTemplate>>,
}

/// What a server says of itself that does not change.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) instructions: Option<String>,
    /// The `_meta` of every result, written.
    pub(crate) stamp: Box<RawValue>,
    /// The same, as members.
    pub(crate) stamp_members: Meta,
    pub(crate) list_changed: bool,
    pub(crate) resource_updates: bool,
    pub(crate) logging: bool,
    /// At least 1; all on one page without.
    pub(crate) page_size: Option<usize>,
    pub(crate) cache: CacheHint,
}

/// Which capabilities are declared. Methods of the others do not exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offers {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) completions: bool,
}

/// A tool with its schemas compiled and its headers known.
pub(crate) struct RegisteredTool {
    pub(crate) tool: Tool,
    pub(crate) input: CompiledSchema,
    pub(crate) output: Option<CompiledSchema>,
    pub(crate) param_headers: ParamHeaders,
}

impl Lists {
    /// What a caller's token must hold to read all of these.
    pub(crate) fn scopes_of(&self, uris: &[String]) -> Vec<String> {
        let scopes = |uri: &String| match self.resources.get(uri) {
            Some(resource) => Some(&resource.settings.scopes),
            None => {
                let template = self.templates.iter().find(|template| template.variables(uri).is_some());
                template.map(|template| &template.settings.scopes)
            }
        };
        let mut all: Vec<String> = Vec::new();
        for scope in uris.iter().filter_map(scopes).flatten() {
            if !all.contains(scope) {
                all.push(scope.clone());
            }
        }
        all
    }
}

impl Registry {
    pub(crate) fn new(lists: Lists, profile: Arc<Profile>) -> Result<Self, BuildError> {
        let completes = lists.prompts.iter().any(|prompt| !prompt.completers.is_empty())
            || lists.templates.iter().any(|template| !template.completers.is_empty());
        let has_resources = !lists.resources.is_empty() || !lists.templates.is_empty();
        let offers = Offers {
            tools: profile.list_changed || !lists.tools.is_empty(),
            prompts: profile.list_changed || !lists.prompts.is_empty(),
            resources: profile.list_changed || profile.resource_updates || has_resources,
            completions: completes,
        };
        let mut discover = DiscoverResult::new(ProtocolVersion::MODERN.to_vec(), offers.declared(&profile));
        discover.instructions.clone_from(&profile.instructions);
        discover.ttl_ms = profile.cache.ttl;
        discover.cache_scope = profile.cache.scope;
        discover.meta = Some(profile.stamp_members.clone());
        Ok(Self { discover: raw(&discover)?, lists, offers, profile })
    }
}

impl Registry {
    /// What is said in a handshake.
    pub(crate) fn initialized(&self, version: &ProtocolVersion, info: &Implementation) -> InitializeResult {
        let capabilities = self.offers.declared(&self.profile);
        let mut result = InitializeResult::new(version.clone(), capabilities, info.clone());
        result.instructions.clone_from(&self.profile.instructions);
        result
    }
}

impl Registry {
    /// Returns the arguments of this tool that a request repeats in headers; `None` if the request calls no tool of this
    /// name.
    pub(crate) fn param_headers(&self, method_name: &str, name: &str) -> Option<&ParamHeaders> {
        if method_name != method::TOOLS_CALL {
            return None;
        }
        Some(&self.lists.tools.get(name)?.param_headers)
    }
}

impl Offers {
    /// Whether the method belongs to a declared capability. Methods of none are not its matter.
    pub(crate) fn has_method(self, name: &str) -> bool {
        match name {
            method::TOOLS_LIST | method::TOOLS_CALL => self.tools,
            method::PROMPTS_LIST | method::PROMPTS_GET => self.prompts,
            method::RESOURCES_LIST | method::RESOURCE_TEMPLATES_LIST | method::RESOURCES_READ => {
                self.resources
            }
            method::COMPLETION_COMPLETE => self.completions,
            _ => true,
        }
    }

    fn declared(self, profile: &Profile) -> ServerCapabilities {
        let mut declared = ServerCapabilities::default();
        let mut declare = |name: &str, is_offered: bool, settings: &[(&str, bool)]| {
            if is_offered {
                // What is not so is left out.
                let settings = settings.iter().filter(|(_, is_so)| *is_so);
                let settings = settings.map(|(name, _)| ((*name).to_owned(), Value::Bool(true))).collect();
                declared.0.insert(name.to_owned(), Value::Object(settings));
            }
        };
        let changes = ("listChanged", profile.list_changed);
        declare("tools", self.tools, &[changes]);
        declare("prompts", self.prompts, &[changes]);
        declare("resources", self.resources, &[("subscribe", profile.resource_updates), changes]);
        declare("completions", self.completions, &[]);
        declare("logging", profile.logging, &[]);
        declared
    }
}

impl Profile {
    /// What a cursor of this list is a cursor of.
    pub(crate) fn cursors_of<T: Listed>(&self) -> String {
        format!("{} {}", self.name, T::MEMBER)
    }
}

impl RegisteredTool {
    /// Checks a tool and compiles its schemas.
    pub(crate) fn new(tool: Tool) -> Result<Self, BuildError> {
        let name = &tool.definition.name;
        // > Tool names **SHOULD** be between 1 and 128 characters in length (inclusive). [...] uppercase and lowercase
        // > ASCII letters (A-Z, a-z), digits (0-9), underscore (\_), hyphen (-), and dot (.)
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if !(1..=128).contains(&name.len()) || !name.bytes().all(plain) {
            return Err(BuildError(format!(
                "the tool name {name:?} is not 1 to 128 letters, digits, underscores, hyphens and dots"
            )));
        }
        if tool.schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(BuildError(format!(
                "the input schema of the tool `{name}` must have the type `object`: take a struct"
            )));
        }
        let input = CompiledSchema::compile(&tool.schema).map_err(|fault| {
            BuildError(format!("the input schema of the tool `{name}` is not valid: {fault}"))
        })?;
        // What clients read, which says less of `null` than what is checked.
        let param_headers = ParamHeaders::of(&tool.definition.input_schema.to_value())
            .map_err(|fault| BuildError(format!("the input schema of the tool `{name}`: {fault}")))?;
        let output = tool.output.as_ref().map(|schema| compile_output(name, schema)).transpose()?;
        Ok(Self { tool, input, output, param_headers })
    }

    /// What is wrong with a result.
    ///
    /// > Servers **MUST** provide structured results that conform to this schema.
    ///
    /// A tool that failed has no such result.
    pub(crate) fn misfit(&self, result: &CallToolResult) -> Option<String> {
        let schema = self.output.as_ref().filter(|_| !result.failed())?;
        match &result.structured_content {
            Some(content) => schema.faults(content),
            None => Some("it has no structuredContent".to_owned()),
        }
    }
}

fn compile_output(name: &str, schema: &Value) -> Result<CompiledSchema, BuildError> {
    if !schema.is_object() {
        return Err(BuildError(format!("the output schema of the tool `{name}` must be an object")));
    }
    CompiledSchema::compile(schema)
        .map_err(|fault| BuildError(format!("the output schema of the tool `{name}` is not valid: {fault}")))
}

impl Listed for RegisteredTool {
    type Definition = antiphon_wire::Tool;
    const MEMBER: &'static str = "tools";
    const KIND: ListKind = ListKind::Tools;
    const TWO: &'static str = "tools named";
    const ADVICE: &'static str = ": rename one";

    fn definition(&self) -> &antiphon_wire::Tool {
        &self.tool.definition
    }

    fn settings(&self) -> &Settings {
        &self.tool.settings
    }

    fn key(&self) -> &str {
        &self.tool.definition.name
    }

    /// What is registered was checked.
    fn check(&self) -> Result<(), BuildError> {
        Ok(())
    }

    fn of(lists: &Lists) -> &Arc<List<Self>> {
        &lists.tools
    }

    fn of_mut(lists: &mut Lists) -> &mut Arc<List<Self>> {
        &mut lists.tools
    }
}

/// The first of the names that is there again.
pub(crate) fn twice<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| *name)
}

pub(crate) fn raw(result: &impl Serialize) -> Result<Box<RawValue>, BuildError> {
    serde_json::value::to_raw_value(result).map_err(|fault| BuildError(fault.to_string()))
}
