//! The builder of a server.

use crate::{
    define::{IntoPrompt, IntoResource, IntoTool, Offer, Offered, Service, States},
    errors::BuildError,
    extension::Extension,
    identity::{Caller, Identity, KeptValues},
    layer::LayerSettings,
    offer::{
        CacheHint,
        given::{GivenOffers, Offers},
    },
    options::{
        Clock,
        limits::{Limits, OnExpired},
    },
    runtime::{
        Load, ShedWhen, StateOnlyClients,
        claims::AtMostOnce,
        replay::{Replay, ReplayCheck, ReplayFault},
    },
    task_registry::TaskSettings,
};
use antiphon_seal::{Codec, KeyRing, Principal};
use antiphon_store::ChangeFeed;
use antiphon_wire::{Icon, Implementation};
use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

/// The default time for a person to answer one round.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The builder of a [`Server`](crate::Server).
pub struct ServerBuilder {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) offers: Vec<Offer>,
    pub(crate) given: Option<GivenOffers>,
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
    pub(crate) answer_timeout: Duration,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) on_expired: OnExpired,
    pub(crate) shed_when: Option<Box<ShedWhen>>,
    pub(crate) state_only_clients: StateOnlyClients,
    pub(crate) replay: Replay,
    pub(crate) layers: LayerSettings,
    pub(crate) kept: KeptValues,
    pub(crate) show_errors: bool,
    pub(crate) modern_only: bool,
    pub(crate) at_most_once: AtMostOnce,
    pub(crate) tasks: TaskSettings,
    pub(crate) change_feed: Option<Arc<dyn ChangeFeed>>,
    pub(crate) extensions: Vec<Extension>,
}

/// The source of the keys that seal state.
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
            given: None,
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
            answer_timeout: ANSWER_TIMEOUT,
            call_timeout: None,
            on_expired: OnExpired::default(),
            shed_when: None,
            state_only_clients: StateOnlyClients::BUILT_IN,
            replay: Replay::default(),
            layers: LayerSettings::default(),
            kept: KeptValues::default(),
            show_errors: false,
            modern_only: false,
            at_most_once: AtMostOnce::default(),
            tasks: TaskSettings::default(),
            change_feed: None,
            extensions: Vec::new(),
        }
    }

    /// Sets the server's display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the server's description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Sets the URL of the server's web site.
    #[must_use]
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Adds an icon of the server. Several icons serve several sizes or backgrounds.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.push(icon);
        self
    }

    /// Sets the instructions for a model that uses the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets whether clients of the revisions before 2026-07-28 are refused, with an error that lists the supported
    /// versions. Default: `false`; they are served in sessions.
    #[must_use]
    pub fn modern_only(mut self, on: bool) -> Self {
        self.modern_only = on;
        self
    }

    /// Adds an extension of the protocol: its settings are declared, and its methods are served, in both eras. Two extensions with one
    /// id, or a method that the core protocol or another extension has, are an error of [`build`](Self::build). Default: none; that for
    /// tasks is added where a tool has tasks.
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Self {
        self.extensions.push(extension);
        self
    }

    /// Offers a tool: a function marked `#[tool]`, or a [`Tool`](crate::Tool).
    #[must_use]
    pub fn tool<Shape>(self, tool: impl IntoTool<Shape>) -> Self {
        self.offer(|states, offered| {
            offered.tools.push(tool.into_tool(states)?);
            Ok(())
        })
    }

    /// Offers a prompt: a function marked `#[prompt]`, or a [`Prompt`](crate::Prompt).
    #[must_use]
    pub fn prompt<Shape>(self, prompt: impl IntoPrompt<Shape>) -> Self {
        self.offer(|states, offered| {
            offered.prompts.push(prompt.into_prompt(states)?);
            Ok(())
        })
    }

    /// Offers a resource: a function marked `#[resource(..)]`, or a [`Resource`](crate::Resource). A function whose URI has
    /// variables is a template: see [`template`](Self::template).
    #[must_use]
    pub fn resource<Shape>(self, resource: impl IntoResource<Shape>) -> Self {
        self.offer(|states, offered| {
            offered.resources.push(resource.into_resource(states)?.into_one()?);
            Ok(())
        })
    }

    /// Offers the resources of a template: a function marked `#[resource(..)]` whose URI has variables, or a
    /// [`ResourceTemplate`](crate::ResourceTemplate). Resources come before templates. Of
    /// two templates that match a URI, the one with more literal characters reads it; of two with equally many, the one with
    /// fewer variables that may hold a `/` or are lists (`{+path}`, `{/path*}`), and then the first.
    #[must_use]
    pub fn template<Shape>(self, template: impl IntoResource<Shape>) -> Self {
        self.offer(|states, offered| {
            offered.templates.push(template.into_resource(states)?.into_template()?);
            Ok(())
        })
    }

    /// Offers the tools, prompts and resources that are methods of this value: of a type with `#[server]` on an impl.
    /// All calls share it.
    #[must_use]
    pub fn with(self, service: impl Service) -> Self {
        let service = Arc::new(service);
        self.offer(|states, offered| service.offer(states, offered))
    }

    /// Adds offers that are found at run time, for each caller, behind the server's own: [`Offers`]. Default: none; a second value replaces the
    /// first.
    #[must_use]
    pub fn offers(mut self, offers: impl Offers) -> Self {
        self.given = Some(GivenOffers(Arc::new(offers), Arc::default()));
        self
    }

    /// Adds a value that handlers share: each handler with a parameter [`State<T>`](crate::State) receives it. There is
    /// one value per type. The order of `state` and of what uses it does not matter.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.states.give(state);
        self
    }

    pub(crate) fn offer(
        mut self,
        offer: impl FnOnce(&States, &mut Offered) -> Result<(), BuildError> + Send + Sync + 'static,
    ) -> Self {
        self.offers.push(Box::new(offer));
        self
    }

    /// Sets whether `listChanged` is declared for tools, prompts and resources, even while there are none: the lists may
    /// change while the server runs, by [`Server::add_tool`](crate::Server::add_tool) and its siblings, and subscribers are
    /// notified. Default: `false`.
    #[must_use]
    pub fn list_changed(mut self, on: bool) -> Self {
        self.list_changed = on;
        self
    }

    /// Sets whether `resources.subscribe` is declared: subscribers of a resource are notified of
    /// [`Server::resource_updated`](crate::Server::resource_updated). Default: `false`.
    #[must_use]
    pub fn resource_updates(mut self, on: bool) -> Self {
        self.resource_updates = on;
        self
    }

    /// Sets whether `logging` is declared: handlers may send log messages, with [`Ctx::log`](crate::Ctx::log), to callers that request
    /// them. Default: `false`. Deprecated in 2026-07-28.
    #[must_use]
    pub fn logging(mut self, on: bool) -> Self {
        self.logging = on;
        self
    }

    /// Sets the maximum number of entries on a page of a list, at least 1. Default: all entries on one page, because
    /// some clients do not follow `nextCursor`. Instances that share calls may have different values.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = Some(entries);
        self
    }

    /// Sets how long clients may cache lists and discovery, and for whom. Default: not at all.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }

    /// Seals state with this key ring: every instance with the same ring and the same [`audience`](Self::audience) can
    /// finish a call. Default: a random key that is lost when the process ends, which suits a server of one process.
    #[must_use]
    pub fn keys(mut self, ring: KeyRing) -> Self {
        self.keys = Keys::Ring(ring);
        self
    }

    /// Seals state with a custom codec, such as a key management service. The server still decides what the state is
    /// bound to and when it expires.
    #[must_use]
    pub fn codec(mut self, codec: Box<dyn Codec>) -> Self {
        self.keys = Keys::Codec(codec);
        self
    }

    /// Sets the audience of the state. Default: the server's name. State of another audience does not open here, even
    /// under the same keys.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Sets the number of instances that share the calls. More than one instance requires a key ring. Default: 1.
    #[must_use]
    pub fn instances(mut self, instances: usize) -> Self {
        self.instances = instances;
        self
    }

    /// Sets the function that identifies the caller. State is bound to the returned principal, and refused for any
    /// other. Default: the [`Principal`] that a layer in front left in the extensions of the HTTP request.
    ///
    /// If the function returns an `Err`, the error is logged and the request is refused before the handler runs: the
    /// handler would otherwise see an anonymous caller.
    #[must_use]
    pub fn bind_principal<E: Into<Box<dyn StdError + Send + Sync>>>(
        mut self,
        binder: impl Fn(&Caller<'_>) -> Result<Option<Principal>, E> + Send + Sync + 'static,
    ) -> Self {
        self.identity.binder = Arc::new(move |caller| binder(caller).map_err(Into::into));
        self
    }

    /// Sets whether a principal without a subject is accepted: all users of one client program are then the same
    /// principal. Default: `false`; the request of such a caller is refused before the handler runs.
    #[must_use]
    pub fn allow_client_principal(mut self, on: bool) -> Self {
        self.identity.client_is_enough = on;
        self
    }

    /// Sets the function that decides, by a client's self-reported name and version, if the client accepts a result
    /// that holds state only. The server sends such a result at a [checkpoint](crate::Ctx::checkpoint), and before it
    /// reports a failure that follows something recorded. For a client that does not accept one, checkpoints are passed
    /// and failures are reported at once. Default: [`accepts_state_only`](crate::accepts_state_only), a built-in table.
    ///
    /// ```
    /// use antiphon::server::{Server, asks::accepts_state_only};
    ///
    /// let server = Server::builder("orders", "1.0.0")
    ///     .accepts_state_only(|client| accepts_state_only(client) && client.is_none_or(|client| client.name != "old-host"));
    /// ```
    #[must_use]
    pub fn accepts_state_only(
        mut self,
        decides: impl Fn(Option<&Implementation>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.state_only_clients = StateOnlyClients::decided_by(decides);
        self
    }

    /// Sets the limits. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the time for a person to answer one round. Default: ten minutes. Tools may set their own. In a legacy
    /// session, a client that reports progress of a question has more time: [`Limits::max_answer_timeout`].
    #[must_use]
    pub fn answer_timeout(mut self, time: Duration) -> Self {
        self.answer_timeout = time;
        self
    }

    /// Sets the time for a whole call, from its first request. Default: unlimited; only each round has a limit.
    #[must_use]
    pub fn call_timeout(mut self, time: Duration) -> Self {
        self.call_timeout = Some(time);
        self
    }

    /// Sets the treatment of expired state. With [`OnExpired::AskAgain`] a whole call may take 24 hours, unless
    /// [`call_timeout`](Self::call_timeout) is set. Default: [`OnExpired::Refuse`].
    #[must_use]
    pub fn on_expired(mut self, on_expired: OnExpired) -> Self {
        self.on_expired = on_expired;
        self
    }

    /// Sets the function that decides if legs end at their next [`checkpoint`](crate::Ctx::checkpoint), so that another
    /// instance continues them. While the server [drains](crate::Server::drain), they end there in any case. Default:
    /// never.
    #[must_use]
    pub fn shed_when(mut self, sheds: impl Fn(&Load) -> bool + Send + Sync + 'static) -> Self {
        self.shed_when = Some(Box::new(sheds));
        self
    }

    /// Sets in which calls a handler is run twice, to check that it asks the same questions again. The second run
    /// repeats the handler's own input and output outside of steps. Default: every call in debug builds, no call in
    /// release builds.
    #[must_use]
    pub fn replay_check(mut self, check: ReplayCheck) -> Self {
        self.replay.check = check;
        self
    }

    /// Sets the function that receives the faults found by the [`replay_check`](Self::replay_check). Default: the fault
    /// is logged as an error. A panic of the function ends the request, which is useful in tests; otherwise the reply
    /// does not depend on the function.
    #[must_use]
    pub fn on_replay_fault(mut self, report: impl Fn(&ReplayFault) + Send + Sync + 'static) -> Self {
        self.replay.report = Box::new(report);
        self
    }

    /// Sends the texts of hidden errors to clients: of foreign errors ([`Error`](crate::Error)), panics, invalid questions
    /// and failed steps. For development only, because such texts may contain paths, hosts and queries; a warning is
    /// logged when the server is built. Default: `false`.
    #[must_use]
    pub fn show_errors(mut self, show: bool) -> Self {
        self.show_errors = show;
        self
    }

    /// Sets the clock, for tests. Default: the system's clock.
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
