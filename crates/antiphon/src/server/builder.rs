//! Putting a server together.

use super::{
    Caller, Limits, OnExpired, Prompt, Resource, ResourceTemplate, Server, Tool,
    caller::Identity,
    hub::Hub,
    limits::CALL_WITHIN,
    reply::Stamp,
    serve::{Inner, RegisteredTool, Written},
};
use crate::Clock;
use antiphon_seal::{Codec, EntropyError, KeyRing, Principal, Sealer};
use antiphon_wire::{
    DiscoverResult, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, Meta, ProtocolVersion, ServerCapabilities, meta_keys,
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use std::{
    collections::HashMap,
    error::Error as StdError,
    fmt,
    sync::{Arc, atomic::AtomicBool, atomic::AtomicUsize},
    time::Duration,
};

/// How long a person may take for one round, unless set otherwise.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// A server in the making.
pub struct ServerBuilder {
    info: Implementation,
    instructions: Option<String>,
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    keys: Keys,
    audience: Option<String>,
    instances: usize,
    identity: Identity,
    limits: Limits,
    clock: Clock,
    answer_within: Duration,
    call_within: Option<Duration>,
    on_expired: OnExpired,
    logging: bool,
    list_changed: bool,
    resource_updates: bool,
}

enum Keys {
    Ephemeral,
    Ring(KeyRing),
    Codec(Box<dyn Codec>),
}

/// Why a server cannot be built. Says what to change.
#[derive(Debug)]
pub struct BuildError(String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for BuildError {}

impl From<EntropyError> for BuildError {
    fn from(error: EntropyError) -> Self {
        Self(error.to_string())
    }
}

impl ServerBuilder {
    pub(super) fn new(name: String, version: String) -> Self {
        Self {
            info: Implementation::new(name, version),
            instructions: None,
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            keys: Keys::Ephemeral,
            audience: None,
            instances: 1,
            identity: Identity::default(),
            limits: Limits::default(),
            clock: Clock::system(),
            answer_within: ANSWER_WITHIN,
            call_within: None,
            on_expired: OnExpired::default(),
            logging: false,
            list_changed: false,
            resource_updates: false,
        }
    }

    /// What the server is called, for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// How to use the server, for a model.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Offers a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Offers a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// Offers a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Offers the resources of a template. Resources come before templates, templates in the order they were given.
    #[must_use]
    pub fn template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Seals state with this key ring, so that every instance with the same ring and the same
    /// [`audience`](Self::audience) can finish a call. Without one, the key is random and ends with the process: right
    /// for one process.
    #[must_use]
    pub fn keys(mut self, ring: KeyRing) -> Self {
        self.keys = Keys::Ring(ring);
        self
    }

    /// Seals state with a codec of your own, such as a key management service. What is bound and when it expires
    /// stays the server's business.
    #[must_use]
    pub fn codec(mut self, codec: Box<dyn Codec>) -> Self {
        self.keys = Keys::Codec(codec);
        self
    }

    /// What the state is for. Default: the server's name. State of another audience does not open here, even under
    /// the same keys.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// How many instances share the calls. More than one need a key ring.
    #[must_use]
    pub fn instances(mut self, instances: usize) -> Self {
        self.instances = instances;
        self
    }

    /// Who is calling. State is bound to the answer, and refused for any other. Default: the [`Principal`] that a layer
    /// in front left in the extensions of the HTTP request.
    ///
    /// An `Err` is logged, and the request is refused before the handler: it would take the caller for an anonymous one.
    #[must_use]
    pub fn bind_principal<E: Into<Box<dyn StdError + Send + Sync>>>(
        mut self,
        binder: impl Fn(&Caller<'_>) -> Result<Option<Principal>, E> + Send + Sync + 'static,
    ) -> Self {
        self.identity.binder = Arc::new(move |caller| binder(caller).map_err(Into::into));
        self
    }

    /// Accepts a principal without a subject: then all users of one client software are one. Without this, such a
    /// caller is refused before the handler.
    #[must_use]
    pub fn allow_client_principal(mut self) -> Self {
        self.identity.client_is_enough = true;
        self
    }

    /// Other bounds than the default ones.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a person may take for one round. Default: ten minutes. Tools may set their own.
    #[must_use]
    pub fn answer_within(mut self, time: Duration) -> Self {
        self.answer_within = time;
        self
    }

    /// How long a whole call may take, from its first request. Default: no bound but that of each round.
    #[must_use]
    pub fn call_within(mut self, time: Duration) -> Self {
        self.call_within = Some(time);
        self
    }

    /// What becomes of a state that comes back after its time. With [`OnExpired::AskAgain`] a whole call may take 24
    /// hours, unless [`call_within`](Self::call_within) says otherwise.
    #[must_use]
    pub fn on_expired(mut self, on_expired: OnExpired) -> Self {
        self.on_expired = on_expired;
        self
    }

    /// Handlers may send log messages to callers that ask for them, with [`Ctx::log`](super::Ctx::log). Declares
    /// `logging`, which is deprecated in 2026-07-28.
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.logging = true;
        self
    }

    /// The lists may change while the server runs. Declares `listChanged`.
    #[must_use]
    pub fn list_changed(mut self) -> Self {
        self.list_changed = true;
        self
    }

    /// Resources may be updated, and subscriptions hear of it. Declares `resources.subscribe`.
    #[must_use]
    pub fn resource_updates(mut self) -> Self {
        self.resource_updates = true;
        self
    }

    /// Another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The server.
    ///
    /// # Errors
    /// Says which tool, prompt, resource or setting cannot be, and what to change.
    pub fn build(self) -> Result<Server, BuildError> {
        let audience = self.audience.clone().unwrap_or_else(|| self.info.name.clone());
        let stamp = stamp_of(&self.info)?;
        let written = self.write(&stamp)?;
        let sealer = sealer(self.keys, &audience, self.instances, &self.limits)?;
        let call_within = match self.on_expired {
            OnExpired::Refuse => self.call_within,
            // Without a deadline a late state would open for ever.
            OnExpired::AskAgain => self.call_within.or(Some(CALL_WITHIN)),
        };
        let mut tools = HashMap::new();
        for tool in self.tools {
            let name = tool.definition.name.clone();
            let registered = register(tool)?;
            if tools.insert(name.clone(), registered).is_some() {
                return Err(BuildError(format!("there are two tools named `{name}`: rename one")));
            }
        }
        let prompts = unique(self.prompts, "prompts named", |prompt| &prompt.definition.name)?;
        let resources = unique(self.resources, "resources at", |resource| &resource.definition.uri)?;
        for (index, template) in self.templates.iter().enumerate() {
            let uri = &template.definition.uri_template;
            if self.templates[..index].iter().any(|before| before.definition.uri_template == *uri) {
                return Err(BuildError(format!(
                    "there are two templates `{uri}`: the second would never be read"
                )));
            }
            if let Err(fault) = &template.matcher {
                return Err(BuildError(format!("the template `{uri}` cannot be matched: {fault}")));
            }
        }
        Ok(Server(Arc::new(Inner {
            name: self.info.name,
            stamp: Stamp { written: raw(&stamp)?, members: stamp },
            tools,
            prompts,
            resources,
            templates: self.templates,
            written,
            sealer,
            identity: self.identity,
            limits: self.limits,
            clock: self.clock,
            answer_within: self.answer_within,
            call_within,
            on_expired: self.on_expired,
            logging: self.logging,
            list_changed: self.list_changed,
            resource_updates: self.resource_updates,
            hub: Hub::default(),
            running: AtomicUsize::new(0),
            told_of_unknown_key: AtomicBool::new(false),
        })))
    }

    /// The lists and the discovery, in the order things were given.
    fn write(&self, stamp: &Meta) -> Result<Written, BuildError> {
        let mut capabilities = ServerCapabilities::default();
        for (offered, name) in [
            (!self.tools.is_empty(), "tools"),
            (!self.prompts.is_empty(), "prompts"),
            (!self.resources.is_empty() || !self.templates.is_empty(), "resources"),
        ] {
            if offered {
                capabilities = capabilities.with(name);
            }
        }
        let mut discover = DiscoverResult::new(ProtocolVersion::MODERN.to_vec(), capabilities);
        discover.instructions = self.instructions.clone();
        discover.meta = Some(stamp.clone());
        let mut tools = ListToolsResult::new(self.tools.iter().map(|tool| tool.definition.clone()).collect());
        tools.meta = Some(stamp.clone());
        let mut prompts =
            ListPromptsResult::new(self.prompts.iter().map(|prompt| prompt.definition.clone()).collect());
        prompts.meta = Some(stamp.clone());
        let mut resources =
            ListResourcesResult::new(self.resources.iter().map(|one| one.definition.clone()).collect());
        resources.meta = Some(stamp.clone());
        let mut templates = ListResourceTemplatesResult::new(
            self.templates.iter().map(|one| one.definition.clone()).collect(),
        );
        templates.meta = Some(stamp.clone());
        Ok(Written {
            discover: raw(&discover)?,
            tools: raw(&tools)?,
            prompts: raw(&prompts)?,
            resources: raw(&resources)?,
            templates: raw(&templates)?,
        })
    }
}

/// What seals the state of this audience.
fn sealer(keys: Keys, audience: &str, instances: usize, limits: &Limits) -> Result<Sealer, BuildError> {
    let sealer = match keys {
        Keys::Ephemeral if instances > 1 => {
            return Err(BuildError(format!(
                "{instances} instances cannot finish each other's calls under random keys: give each the same key ring \
                 with `.keys(..)`; `antiphon keygen` makes a key"
            )));
        }
        Keys::Ephemeral => Sealer::new(&KeyRing::random()?, audience),
        // Anybody's state would open here.
        _ if audience.is_empty() => {
            return Err(BuildError(
                "a key ring needs a named server, or an audience: use `.audience(..)`".to_owned(),
            ));
        }
        Keys::Ring(ring) => Sealer::new(&ring, audience),
        Keys::Codec(codec) => Sealer::with_codec(codec, audience),
    };
    // Claims and padding add an eighth and some; base64 adds a third.
    let claims = limits.state.saturating_add(limits.state / 8).saturating_add(1024);
    Ok(sealer.with_max_token_len((claims / 3).saturating_mul(4).saturating_add(64)))
}

fn stamp_of(info: &Implementation) -> Result<Meta, BuildError> {
    let mut members = Map::new();
    let info = serde_json::to_value(info).map_err(|fault| BuildError(fault.to_string()))?;
    members.insert(meta_keys::SERVER_INFO.into(), info);
    Ok(Meta(members))
}

/// Checks a tool and compiles its schema.
fn register(tool: Tool) -> Result<RegisteredTool, BuildError> {
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
    // > Clients and servers **MUST** validate schemas according to their declared or default dialect.
    let validator = jsonschema::options().build(&tool.schema).map_err(|fault| {
        BuildError(format!("the input schema of the tool `{name}` is not valid: {fault}"))
    })?;
    Ok(RegisteredTool { tool, validator })
}

fn unique<T>(
    things: Vec<T>,
    what: &str,
    key: impl Fn(&T) -> &String,
) -> Result<HashMap<String, T>, BuildError> {
    let mut map = HashMap::with_capacity(things.len());
    for thing in things {
        let key = key(&thing).clone();
        if map.insert(key.clone(), thing).is_some() {
            return Err(BuildError(format!("there are two {what} `{key}`")));
        }
    }
    Ok(map)
}

fn raw(result: &impl Serialize) -> Result<Box<RawValue>, BuildError> {
    serde_json::value::to_raw_value(result).map_err(|fault| BuildError(fault.to_string()))
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("name", &self.info.name).finish_non_exhaustive()
    }
}
