//! Putting a server together.

use crate::{
    BuildError, CacheHint, Caller, Clock, IntoPrompt, IntoResource, IntoTool, Limits, OnExpired, ReplayCheck,
    ReplayFault, Service,
    define::{Offer, Offered, States},
    identity::caller::Identity,
    runtime::{Load, ShedWhen, replay::Replay, state_only::StateOnly},
};
use antiphon_seal::{Codec, KeyRing, Principal};
use antiphon_wire::{Icon, Implementation};
use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

/// How long a person may take for one round, unless set otherwise.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// A server in the making.
pub struct ServerBuilder {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) offers: Vec<Offer>,
    pub(crate) states: States,
    pub(crate) list_changed: bool,
    pub(crate) resource_updates: bool,
    pub(crate) logging: bool,
    pub(crate) page_size: Option<usize>,
    pub(crate) cache: CacheHint,
    pub(crate) keys: Keys,
    pub(crate) audience: Option<String>,
    pub(crate) instances: usize,
    pub(crate) identity: Identity,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) answer_within: Duration,
    pub(crate) call_within: Option<Duration>,
    pub(crate) on_expired: OnExpired,
    pub(crate) shed_when: Option<Box<ShedWhen>>,
    pub(crate) state_only: StateOnly,
    pub(crate) replay: Replay,
    pub(crate) modern_only: bool,
}

/// What seals state.
pub(crate) enum Keys {
    Ephemeral,
    Ring(KeyRing),
    Codec(Box<dyn Codec>),
}

impl ServerBuilder {
    pub(crate) fn new(name: String, version: String) -> Self {
        Self {
            info: Implementation::new(name, version),
            instructions: None,
            offers: Vec::new(),
            states: States::default(),
            list_changed: false,
            resource_updates: false,
            logging: false,
            page_size: None,
            cache: CacheHint::default(),
            keys: Keys::Ephemeral,
            audience: None,
            instances: 1,
            identity: Identity::default(),
            limits: Limits::default(),
            clock: Clock::system(),
            answer_within: ANSWER_WITHIN,
            call_within: None,
            on_expired: OnExpired::default(),
            shed_when: None,
            state_only: StateOnly::BUILT_IN,
            replay: Replay::default(),
            modern_only: false,
        }
    }

    /// What the server is called, for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// What the server is for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Where to learn more about the server.
    #[must_use]
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// A picture for the server; several for several sizes or backgrounds.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.push(icon);
        self
    }

    /// How to use the server, for a model.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Serves no client of a revision before 2026-07-28: nobody opens a session. Such a client is told which versions are
    /// spoken here.
    #[must_use]
    pub fn modern_only(mut self) -> Self {
        self.modern_only = true;
        self
    }

    /// Offers a tool: a function marked `#[tool]`, or a [`Tool`](super::Tool).
    #[must_use]
    pub fn tool<Shape>(self, tool: impl IntoTool<Shape>) -> Self {
        self.offer(|states, offered| {
            offered.tools.push(tool.into_tool(states)?);
            Ok(())
        })
    }

    /// Offers a prompt: a function marked `#[prompt]`, or a [`Prompt`](super::Prompt).
    #[must_use]
    pub fn prompt<Shape>(self, prompt: impl IntoPrompt<Shape>) -> Self {
        self.offer(|states, offered| {
            offered.prompts.push(prompt.into_prompt(states)?);
            Ok(())
        })
    }

    /// Offers a resource: a function marked `#[resource(..)]`, or a [`Resource`](super::Resource).
    ///
    /// A function whose URI has variables is a template; it may be given here too.
    #[must_use]
    pub fn resource<Shape>(self, resource: impl IntoResource<Shape>) -> Self {
        self.offer(|states, offered| {
            offered.add(resource.into_resource(states)?);
            Ok(())
        })
    }

    /// Offers the resources of a template: a function marked `#[resource(..)]`, or a
    /// [`ResourceTemplate`](super::ResourceTemplate). Resources come before templates, templates in the order they were
    /// given.
    #[must_use]
    pub fn template<Shape>(self, template: impl IntoResource<Shape>) -> Self {
        self.resource(template)
    }

    /// Offers the tools, prompts and resources that are methods of this value: of a type with `#[server]` on an impl.
    /// All calls share it.
    #[must_use]
    pub fn with(self, service: impl Service) -> Self {
        let service = Arc::new(service);
        self.offer(|states, offered| service.offer(states, offered))
    }

    /// Gives handlers something to share: each that has a parameter [`State<T>`](super::State) is lent it. One for each
    /// type; before or after what takes it.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.states.give(state);
        self
    }

    fn offer(
        mut self,
        offer: impl FnOnce(&States, &mut Offered) -> Result<(), BuildError> + Send + Sync + 'static,
    ) -> Self {
        self.offers.push(Box::new(offer));
        self
    }

    /// Lists may change while the server runs, by [`Server::add_tool`](super::Server::add_tool) and its like, and who
    /// listens hears of it. Declares `listChanged` for tools, prompts and resources, even while there are none.
    #[must_use]
    pub fn list_changed(mut self) -> Self {
        self.list_changed = true;
        self
    }

    /// Who subscribes to a resource hears of [`Server::resource_updated`](super::Server::resource_updated). Declares
    /// `resources.subscribe`.
    #[must_use]
    pub fn resource_updates(mut self) -> Self {
        self.resource_updates = true;
        self
    }

    /// Handlers may send log messages to callers that ask for them, with [`Ctx::log`](super::Ctx::log). Declares
    /// `logging`, which is deprecated in 2026-07-28.
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.logging = true;
        self
    }

    /// How many entries a page of a list has at most, from 1. Default: all of them. Instances that share calls need
    /// not agree.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = Some(entries);
        self
    }

    /// For how long clients may keep lists and discovery, and for whom. Default: not at all.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
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

    /// Decides, by its self-reported name and version, which client can take a result that holds state only: at a
    /// [checkpoint](super::Ctx::checkpoint), and where a request fails behind something it has recorded, so that the record
    /// leaves before the failure is told. For a client that cannot, checkpoints are passed and failures are told at once.
    /// Default: [`takes_state_only`](super::takes_state_only), a built-in table.
    ///
    /// ```
    /// use antiphon::server::{Server, takes_state_only};
    ///
    /// let server = Server::builder("orders", "1.0.0")
    ///     .state_only(|client| takes_state_only(client) && client.is_none_or(|client| client.name != "old-host"));
    /// ```
    #[must_use]
    pub fn state_only(
        mut self,
        decides: impl Fn(Option<&Implementation>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.state_only = StateOnly::decided_by(decides);
        self
    }

    /// Other bounds than the default ones.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a person may take for one round. Default: ten minutes. Tools may set their own. In a legacy session, a client
    /// that tells progress of a question has longer for it: [`Limits::answer_at_most`].
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

    /// When legs should end at their next [`checkpoint`](super::Ctx::checkpoint), so that another instance goes on with
    /// them. While the server [drains](super::Server::drain) they do in any case.
    #[must_use]
    pub fn shed_when(mut self, sheds: impl Fn(&Load) -> bool + Send + Sync + 'static) -> Self {
        self.shed_when = Some(Box::new(sheds));
        self
    }

    /// Whether handlers are run twice, to see that they ask the same again: their own input and output outside of steps is
    /// done once more then. Default: in every call in debug builds, never in release builds.
    #[must_use]
    pub fn replay_check(mut self, check: ReplayCheck) -> Self {
        self.replay.check = check;
        self
    }

    /// What is done with what the [`replay_check`](Self::replay_check) finds. Default: an error in the log. A panic in it
    /// ends the request, which is of use in tests; otherwise the reply does not depend on it.
    #[must_use]
    pub fn on_replay_fault(mut self, report: impl Fn(&ReplayFault) + Send + Sync + 'static) -> Self {
        self.replay.report = Box::new(report);
        self
    }

    /// Another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("name", &self.info.name).finish_non_exhaustive()
    }
}
