//! All offers of a server at one moment. A request uses one snapshot to its end; a change creates
//! another.

use crate::{
    errors::BuildError,
    feed::ListKind,
    identity::account::CallerInfo,
    offer::{
        PerCaller, Profile,
        given::{AnyOffers, FindFuture, GivenItem, GivenOffers},
        list::{List, ListItem},
        prompt::Prompt,
        raw,
        resource::{Resource, ResourceTemplate, most_literal},
        tool::{KnownChecks, Tool, ToolChecks},
    },
    options::{Level, Settings, TaskMode},
};
use antiphon_wire::{
    DiscoverResult, Implementation, InitializeResult, ProtocolVersion, ServerCapabilities, TaskSupport,
    TasksCapability, escaped, header::params::ParamHeaders, method,
};
use serde_json::{Value, value::RawValue};
use std::sync::Arc;

/// The offers that may change while the server runs, and the discovery result that follows from them.
#[derive(Debug)]
pub(crate) struct Offers {
    pub(crate) lists: Lists,
    pub(crate) capabilities: DeclaredCapabilities,
    pub(crate) discover: Box<RawValue>,
    /// True if a tool that all callers see has arguments that a request repeats in headers.
    has_param_headers: bool,
    pub(crate) profile: Arc<Profile>,
    /// The offers that are found at run time.
    pub(crate) given: Option<GivenOffers>,
}

#[derive(Clone, Debug)]
pub(crate) struct Lists {
    pub(crate) tools: Arc<List<RegisteredTool>>,
    pub(crate) prompts: Arc<List<Prompt>>,
    pub(crate) resources: Arc<List<Resource>>,
    pub(crate) templates: Arc<List<ResourceTemplate>>,
}

/// The declared capabilities. Methods of other capabilities do not exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeclaredCapabilities {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) completions: bool,
    pub(crate) tasks: bool,
}

/// A tool with its compiled schemas and its headers.
pub(crate) struct RegisteredTool {
    pub(crate) tool: Tool,
    pub(crate) checks: Arc<ToolChecks>,
}

impl Lists {
    /// Returns the highest protection that an offer sets for itself.
    pub(crate) fn most_protected(&self) -> Level {
        let tools = self.tools.iter().map(|tool| &tool.tool.settings);
        let prompts = self.prompts.iter().map(|prompt| &prompt.settings);
        let resources = self.resources.iter().map(|resource| &resource.settings);
        let templates = self.templates.iter().map(|template| &template.settings);
        let all = tools.chain(prompts).chain(resources).chain(templates);
        all.filter_map(|settings| settings.at_most_once).max().unwrap_or_default()
    }

    /// Returns the scopes that a caller's token needs to read all of these resources. What the caller does not see needs none.
    pub(crate) fn scopes_of(&self, uris: &[String], caller: Option<&CallerInfo>) -> Vec<String> {
        let scopes = |uri: &String| match self.reading(uri, caller)? {
            Reading::Resource(resource) => Some(&resource.settings.scopes),
            Reading::Template(template) => Some(&template.settings.scopes),
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

/// The item that a URI is read from.
enum Reading<'a> {
    Resource(&'a Resource),
    Template(&'a ResourceTemplate),
}

impl Lists {
    /// Returns the item from which this caller reads the URI. Without a caller, only items that all callers see are found.
    fn reading(&self, uri: &str, caller: Option<&CallerInfo>) -> Option<Reading<'_>> {
        let resource = self.resources.get(uri).filter(|resource| is_visible(*resource, caller));
        if let Some(resource) = resource {
            return Some(Reading::Resource(resource));
        }
        let template = most_literal(self.templates.iter(), uri, |template| is_visible(template, caller));
        template.map(|(template, _)| Reading::Template(template))
    }

    /// Returns whether the caller of a subscription is notified of changes of this URI: it is read from an item that the caller sees, or from
    /// none at all.
    pub(crate) fn reports(&self, uri: &str, caller: &CallerInfo) -> bool {
        self.reading(uri, Some(caller)).is_some() || !self.has_hidden(uri)
    }

    /// Returns whether an item that some callers do not see has this URI.
    pub(crate) fn has_hidden(&self, uri: &str) -> bool {
        let resource = self.resources.get(uri).is_some_and(|resource| resource.per_caller.hides());
        let mut hidden = self.templates.iter().filter(|template| template.per_caller.hides());
        resource || hidden.any(|template| template.variables(uri).is_some())
    }
}

fn is_visible<T: ListItem>(item: &T, caller: Option<&CallerInfo>) -> bool {
    let rules = item.per_caller();
    !rules.hides() || caller.is_some_and(|caller| rules.shows(item.key(), caller))
}

/// Access to a list of [`Lists`], by the type of its items.
pub(crate) trait ListAccess: ListItem {
    fn of(lists: &Lists) -> &Arc<List<Self>>;
    fn of_mut(lists: &mut Lists) -> &mut Arc<List<Self>>;
}

macro_rules! in_lists {
    ($($entry:ty: $list:ident;)*) => { $(
        impl ListAccess for $entry {
            fn of(lists: &Lists) -> &Arc<List<Self>> {
                &lists.$list
            }

            fn of_mut(lists: &mut Lists) -> &mut Arc<List<Self>> {
                &mut lists.$list
            }
        }
    )* };
}

macro_rules! given {
    ($($entry:ty: $raw:ty, $all:ident, $checked:expr;)*) => { $(
        impl GivenItem for $entry {
            type Raw = $raw;

            fn all<'a>(offers: &'a dyn AnyOffers, caller: &'a CallerInfo) -> FindFuture<'a, Vec<$raw>> {
                offers.$all(caller)
            }

            fn checked(raw: $raw, known: &KnownChecks) -> Result<Self, BuildError> {
                $checked(raw, known)
            }
        }
    )* };
}

given! {
    RegisteredTool: Tool, all_tools, RegisteredTool::without_tasks;
    Prompt: Prompt, all_prompts, |raw, _| Ok(raw);
    Resource: Resource, all_resources, |raw, _| Ok(raw);
    ResourceTemplate: ResourceTemplate, all_templates, |raw, _| Ok(raw);
}

in_lists! {
    RegisteredTool: tools;
    Prompt: prompts;
    Resource: resources;
    ResourceTemplate: templates;
}

impl Offers {
    pub(crate) fn new(
        lists: Lists,
        profile: Arc<Profile>,
        given: Option<GivenOffers>,
    ) -> Result<Self, BuildError> {
        let may_have = |list| given.as_ref().is_some_and(|given| given.0.has_list(list));
        let [given_tools, given_prompts, given_resources] = ListKind::ALL.map(may_have);
        let completes = given_prompts
            || given_resources
            || lists.prompts.iter().any(|prompt| !prompt.completers.is_empty())
            || lists.templates.iter().any(|template| !template.completers.is_empty());
        let has_resources = given_resources || !lists.resources.is_empty() || !lists.templates.is_empty();
        let capabilities = DeclaredCapabilities {
            tools: profile.list_changed || given_tools || !lists.tools.is_empty(),
            prompts: profile.list_changed || given_prompts || !lists.prompts.is_empty(),
            resources: profile.list_changed || profile.resource_updates || has_resources,
            completions: completes,
            tasks: profile.tasks,
        };
        let declared = profile.extensions.declare(capabilities.declared(&profile), false);
        let mut discover = DiscoverResult::new(ProtocolVersion::MODERN.to_vec(), declared);
        discover.instructions.clone_from(&profile.instructions);
        discover.ttl_ms = profile.cache.ttl;
        discover.cache_scope = profile.cache.scope;
        discover.meta = Some(profile.server_info_members.clone());
        let has_param_headers = lists
            .tools
            .iter()
            .any(|tool| !tool.checks.param_headers.is_empty() && !tool.tool.per_caller.hides());
        Ok(Self { discover: raw(&discover)?, lists, capabilities, has_param_headers, profile, given })
    }
}

impl Offers {
    /// Returns the result of the handshake.
    pub(crate) fn initialized(&self, version: &ProtocolVersion, info: &Implementation) -> InitializeResult {
        let capabilities = self.capabilities.declared(&self.profile);
        let mut capabilities = self.profile.extensions.declare(capabilities, true);
        if self.capabilities.tasks && version.has_tasks() {
            capabilities = capabilities.with_tasks(TasksCapability::ALL);
        }
        let mut result = InitializeResult::new(version.clone(), capabilities, info.clone());
        result.instructions.clone_from(&self.profile.instructions);
        result
    }
}

impl Offers {
    /// Returns the arguments of this tool that a request repeats in headers; `None` if the request calls no tool of this
    /// name that all callers see, or if none of them has such arguments.
    pub(crate) fn param_headers(&self, method_name: &str, name: &str) -> Option<&ParamHeaders> {
        // Most servers have no such tool, and look a tool up once per call.
        if !self.has_param_headers || method_name != method::TOOLS_CALL {
            return None;
        }
        let tool = self.lists.tools.get(name).filter(|tool| !tool.tool.per_caller.hides())?;
        Some(&tool.checks.param_headers)
    }
}

impl DeclaredCapabilities {
    /// Returns whether the method belongs to a declared capability, or to none. Those of extensions, tasks among them, belong to none.
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
                // Settings that are false are omitted.
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

impl RegisteredTool {
    /// Warns about a tool without a description.
    pub(crate) fn warn_without_description(&self) {
        if self.tool.definition.description.is_none() {
            tracing::warn!(tool = ?escaped(self.key()), "a tool has no description, by which a model chooses it");
        }
    }

    /// Checks a tool that the server does not keep.
    fn without_tasks(tool: Tool, known: &KnownChecks) -> Result<Self, BuildError> {
        if tool.settings.task != TaskMode::Never {
            let name = escaped(&tool.definition.name);
            return Err(BuildError(format!(
                "the calls of the tool `{name}` of `Offers` cannot become tasks"
            )));
        }
        Self::compiled(tool, |tool| known.of(tool))
    }

    /// Checks a tool and compiles its schemas.
    pub(crate) fn new(tool: Tool) -> Result<Self, BuildError> {
        Self::compiled(tool, |tool| ToolChecks::new(tool).map(Arc::new))
    }

    fn compiled(
        tool: Tool,
        compile: impl FnOnce(&Tool) -> Result<Arc<ToolChecks>, BuildError>,
    ) -> Result<Self, BuildError> {
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
        Ok(Self { checks: compile(&tool)?, tool })
    }
}

impl ListItem for RegisteredTool {
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

    fn per_caller(&self) -> &PerCaller<antiphon_wire::Tool> {
        &self.tool.per_caller
    }

    fn keep(before: antiphon_wire::Tool, changed: &mut antiphon_wire::Tool) {
        (changed.name, changed.input_schema) = (before.name, before.input_schema);
        // With `execution`, which is a promise about calls.
        (changed.output_schema, changed.extra) = (before.output_schema, before.extra);
    }

    fn key(&self) -> &str {
        &self.tool.definition.name
    }

    /// Output schemas of earlier revisions are those of objects only, and the oldest revisions have none. Sessions with tasks
    /// see which tools have them.
    fn definition_for(&self, version: &ProtocolVersion) -> Option<antiphon_wire::Tool> {
        let is_known = !self.tool.output.as_ref().is_some_and(|(schema, _)| {
            !version.has_output_schemas() || schema.get("type").and_then(Value::as_str) != Some("object")
        });
        let support = match self.tool.settings.task {
            // > If `execution.taskSupport` is not present or `"forbidden"`, clients **MUST NOT** attempt to invoke the tool as
            // > a task. [..] This is the default behavior.
            TaskMode::Never => None,
            TaskMode::Optional => Some(TaskSupport::Optional),
            TaskMode::Required => Some(TaskSupport::Required),
        }
        .filter(|_| version.has_tasks());
        if is_known && support.is_none() {
            return None;
        }
        let mut definition = self.tool.definition.clone();
        if !is_known {
            definition.output_schema = None;
        }
        Some(match support {
            Some(support) => definition.with_task_support(support),
            None => definition,
        })
    }

    /// A registered tool was checked before.
    fn check(&self) -> Result<(), BuildError> {
        Ok(())
    }
}
