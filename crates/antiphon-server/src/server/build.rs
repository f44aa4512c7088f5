//! The settings of a server's store and of its tasks, and the server that a builder builds.

use crate::{
    apps,
    define::{Offer, Offered, States},
    errors::{BuildError, refusal_log::RefusalLog},
    extension::{Extension, Extensions},
    feed::Feed,
    identity::account::Accounts,
    metrics::Meters,
    offer::{
        Profile,
        list::List,
        offers::{Lists, Offers, RegisteredTool},
        raw,
        tool::Tool,
    },
    options::{
        Clock, Level, TaskMode,
        limits::{CALL_WITHIN, Limits, OnExpired},
        seconds,
    },
    quota::RequestBudget,
    reply::ServerInfo,
    runtime::{Runtime, Sealing, check_time, claims::ClaimOptions},
    server::{
        Inner, OwnServer, Server,
        builder::{Keys, ServerBuilder},
    },
    session::Sessions,
    subscribe::SubscriptionRegistry,
    task,
    task_registry::{TaskOptions, Tasks},
};
use antiphon_seal::{CallId, KeyRing, Sealer};
use antiphon_store::{CallStore, ChangeFeed, TaskEngine, TaskStore};
use antiphon_wire::{Implementation, Meta, escaped, meta_keys};
use arc_swap::ArcSwap;
use serde_json::Map;
use std::time::Duration;
use std::{
    any::Any,
    sync::{Arc, Weak, atomic::AtomicUsize},
};
use tokio::sync::watch;

impl ServerBuilder {
    /// Sets the store of calls, which [`single_use`](Self::single_use) and [`write_ahead`](Self::write_ahead) need. All
    /// instances of the server share it. It holds sealed data only. An `Arc` of a store is a store too, if other parts of the
    /// program use it. Default: none.
    ///
    /// Its [feed of changes](Self::change_feed), if it has one, is used too, unless the server has one instance only.
    #[must_use]
    pub fn store(mut self, store: impl CallStore) -> Self {
        self.at_most_once.store = Some(Arc::new(store));
        self
    }

    /// Sets whether each state of a call is used at most once, for all tools, prompts and resources that do not set
    /// it themselves. A leg is claimed in the [`store`](Self::store) before its handler runs, and its reply is stored
    /// before it leaves:
    ///
    /// | a request with the same state | result |
    /// |---|---|
    /// | and the same answers | the same reply; the handler does not run |
    /// | and other answers | the error `used` |
    /// | while the first one runs | waits for its reply ([`ClaimOptions::wait_timeout`]), then the error `in_flight` |
    /// | after the process of the first one died | the error `outcome_unknown` |
    ///
    /// The first request of a call has no state yet: it ends before its first new step, and the client sends the state
    /// back at once. A client that does not accept a result with [state only](Self::accepts_state_only) is protected by its
    /// principal and the id of its request, for [`ClaimOptions::first_request_ttl`]; an anonymous one is refused before the
    /// first line of the handler, as `no_claim`. In a session, a request is claimed by its session and its id.
    /// Default: `false`.
    #[must_use]
    pub fn single_use(mut self, on: bool) -> Self {
        self.at_most_once.level = if on { Level::SingleUse } else { Level::None };
        self
    }

    /// Sets whether the start and the end of each step are stored too. After a crash, the same request continues: steps
    /// that ended do not run again. A step that had begun and not ended is refused as `outcome_unknown`, runs again
    /// ([`Tool::rerun_after_crash`](crate::Tool::rerun_after_crash)), or is resolved by the author
    /// ([`Step::reconcile`](crate::Step::reconcile)). A step [in a transaction](crate::Ctx::in_transaction) of the store is never in
    /// that situation. It includes [`single_use`](Self::single_use). Default: `false`.
    #[must_use]
    pub fn write_ahead(mut self, on: bool) -> Self {
        self.at_most_once.level = if on { Level::WriteAhead } else { Level::None };
        self
    }

    /// Sets whether the record of a call moves to the store once it exceeds [`Limits::state`](crate::Limits::state):
    /// the token then has its digest and its size. A record in the store has at most 8 MiB. Default: `false`; a call
    /// with a larger record ends with an error.
    #[must_use]
    pub fn spill(mut self, on: bool) -> Self {
        self.at_most_once.spills = on;
        self
    }

    /// Sets the feed by which instances report changes to each other: what [`resource_updated`](crate::Server::resource_updated), [`list_changed`](crate::Server::list_changed)
    /// and the functions that add and remove items report, and the states of tasks of the embedded engine, reaches the subscribers of all instances
    /// with the same [audience](Self::audience). Default: that of the [`store`](Self::store), if the server has [keys](Self::keys) that others may have and is not a
    /// [single instance](Self::single_instance); otherwise none.
    ///
    /// Changes are published in the background, as digests. An instance that may have missed some notifies its subscribers of everything that
    /// they watch. A change is lost only if its process dies before it is [published](crate::Server::changes_published).
    #[must_use]
    pub fn change_feed(mut self, feed: impl ChangeFeed) -> Self {
        self.change_feed = Some(Arc::new(feed));
        self
    }

    /// Sets the times of claims. Default: [`ClaimOptions::default`].
    #[must_use]
    pub fn claim_options(mut self, options: ClaimOptions) -> Self {
        self.at_most_once.options = options;
        self
    }

    /// Sets whether this server has one instance, although its keys could be shared: a store in memory is then enough.
    /// Default: `false`.
    #[must_use]
    pub fn single_instance(mut self, on: bool) -> Self {
        self.at_most_once.single_instance = on;
        self
    }
}

impl ServerBuilder {
    /// Sets the store of tasks, for the embedded engine. Default: that of the [store of calls](Self::store), if it has one
    /// ([`CallStore::tasks`](antiphon_store::CallStore::tasks)); otherwise tasks are in memory, and end with the process.
    #[must_use]
    pub fn task_store(mut self, store: impl TaskStore) -> Self {
        self.tasks.store = Some(Arc::new(store));
        self
    }

    /// Sets the engine of tasks, in the place of the embedded one with its [store](Self::task_store). An engine serves one server.
    #[must_use]
    pub fn task_engine(mut self, engine: impl TaskEngine) -> Self {
        self.tasks.engine = Some(Arc::new(engine));
        self
    }

    /// Sets the times and limits of tasks. Default: [`TaskOptions::default`].
    #[must_use]
    pub fn task_options(mut self, options: TaskOptions) -> Self {
        self.tasks.options = options;
        self
    }

    /// Serves requests of 2026-07-28 that use tasks as the draft after 2025-11-25 had them, beside the extension: `params.task`,
    /// `tasks/result` with the open questions, and `tasks/input_response`. The draft was never released, and contradicts the
    /// extension, so it is never advertised; a request that declares the extension is served by the extension. Default: `false`.
    #[must_use]
    pub fn draft_tasks(mut self, on: bool) -> Self {
        self.tasks.is_draft = on;
        self
    }
}

impl ServerBuilder {
    /// Builds the server.
    ///
    /// # Errors
    /// Names the tool, prompt, resource or setting that is wrong, and says what to change.
    pub fn build(self) -> Result<Server, BuildError> {
        let audience = self.audience.clone().unwrap_or_else(|| self.info.name.clone());
        let has_shared_keys = !matches!(self.keys, Keys::Ephemeral);
        let sealing = sealing(self.keys, audience.clone(), self.instances, &self.limits, &self.clock)?;
        if self.page_size == Some(0) {
            return Err(BuildError("a page must have at least one entry: use a page_size from 1".to_owned()));
        }
        self.kept.check()?;
        self.states.check()?;
        let offered = offered(self.offers, &self.states)?;
        let has_tasks = self.tasks.store.is_some()
            || self.tasks.engine.is_some()
            || offered.tools.iter().any(|tool| tool.settings.task != TaskMode::Never);
        let extensions = extensions(self.extensions, &offered, has_tasks)?;
        let server_info = server_info(&self.info)?;
        let profile = Arc::new(Profile {
            name: self.info.name.clone(),
            instructions: self.instructions,
            server_info: server_info.raw.clone(),
            server_info_members: server_info.members.clone(),
            list_changed: self.list_changed,
            resource_updates: self.resource_updates,
            logging: self.logging,
            tasks: has_tasks,
            extensions,
            page_size: self.page_size,
            cache: self.cache,
        });
        let lists = lists(offered, &profile)?;
        lists.tools.iter().try_for_each(|tool| tool.tool.check_view(&lists, self.given.as_ref()))?;
        // The steps of tasks are stored, if there is a store.
        let of_tasks =
            if has_tasks && self.at_most_once.store.is_some() { Level::WriteAhead } else { Level::None };
        let level = lists.most_protected().max(self.at_most_once.level).max(of_tasks);
        let is_single = !has_shared_keys || self.at_most_once.single_instance;
        let (own, metrics) = (OwnServer::default(), Arc::<Meters>::default());
        // The feed of a store reaches those who share the store: another store of the tasks may be shared by others.
        let has_tasks_in_feed = self.change_feed.is_some() || self.tasks.store.is_none();
        let reports =
            self.list_changed || self.resource_updates || (has_tasks && self.tasks.engine.is_none());
        let store = self.at_most_once.store.as_ref().filter(|_| !is_single);
        let feed = self.change_feed.or_else(|| store?.change_feed()).filter(|_| reports);
        let feed = feed.map(|feed| new_feed(feed, &audience, own.clone())).transpose()?;
        let claims =
            self.at_most_once.timed(&metrics).claims(level, has_shared_keys, self.limits.step_grace)?;
        let tasks = if has_tasks {
            let calls = claims.as_ref().map(|claims| &claims.store);
            let feed = feed.as_ref().filter(|_| has_tasks_in_feed);
            Some(Tasks::new(self.tasks, calls, is_single, Box::new(own.clone()), feed)?)
        } else {
            None
        };
        let offers = ArcSwap::from_pointee(Offers::new(lists, profile, self.given)?);
        let sessions = Sessions::new(Arc::clone(&metrics))?;
        if self.show_errors {
            tracing::warn!(server = %escaped(&self.info.name), "the texts of hidden errors are sent to clients: use `show_errors` for development only");
        }
        let accounts = Accounts::default();
        let request_budget = RequestBudget::new(&self.limits, self.identity.clone(), accounts.clone());
        let runtime = |owner: Weak<dyn Any + Send + Sync>| Runtime {
            owner,
            name: self.info.name.clone(),
            server_info,
            sealing,
            claims,
            tasks,
            identity: self.identity,
            accounts,
            request_budget,
            limits: self.limits,
            clock: self.clock,
            answer_timeout: self.answer_timeout,
            call_timeout: call_timeout(self.on_expired, self.call_timeout),
            on_expired: self.on_expired,
            subscriptions: Arc::new(SubscriptionRegistry::new(feed.is_some())),
            feed,
            shed_when: self.shed_when,
            state_only_clients: self.state_only_clients,
            replay: self.replay,
            kept: self.kept,
            show_errors: self.show_errors,
            detached: watch::Sender::new(0),
            running: AtomicUsize::new(0),
            running_anonymous: AtomicUsize::new(0),
            metrics,
            refusals: RefusalLog::default(),
        };
        let server = Server(Arc::new_cyclic(|me: &Weak<Inner>| Inner {
            runtime: Arc::new(runtime(me.clone())),
            info: self.info.clone(),
            offers,
            layers: self.layers.build().map(Arc::new),
            states: self.states,
            modern_only: self.modern_only,
            sessions,
        }));
        own.set(&server);
        task::begin(&server.0.runtime);
        Ok(server)
    }
}

/// Returns the time limit of a call. Without one, an expired state that is asked again would open for ever.
fn call_timeout(on_expired: OnExpired, given: Option<Duration>) -> Option<Duration> {
    match on_expired {
        OnExpired::Refuse => given,
        OnExpired::AskAgain => given.or(Some(CALL_WITHIN)),
    }
}

/// Returns what is offered.
fn offered(offers: Vec<Offer>, states: &States) -> Result<Offered, BuildError> {
    let mut offered = Offered::default();
    offers.into_iter().try_for_each(|offer| offer(states, &mut offered))?;
    Ok(offered)
}

/// Returns the extensions, with those that offers need.
fn extensions(
    mut extensions: Vec<Extension>,
    offered: &Offered,
    has_tasks: bool,
) -> Result<Extensions, BuildError> {
    let has_apps = offered.tools.iter().any(Tool::has_ui);
    if has_apps && !extensions.iter().any(|extension| extension.id() == apps::EXTENSION) {
        extensions.push(apps::extension());
    }
    Extensions::new(extensions, has_tasks)
}

/// Returns the feed of changes of a new instance.
fn new_feed(feed: Arc<dyn ChangeFeed>, audience: &str, server: OwnServer) -> Result<Arc<Feed>, BuildError> {
    let origin = CallId::random()?.to_string();
    Ok(Arc::new(Feed::new(feed, audience, origin, move |change| server.deliver(change))))
}

/// Returns the lists of the offers.
fn lists(offered: Offered, profile: &Profile) -> Result<Lists, BuildError> {
    let tools = offered.tools.into_iter().map(RegisteredTool::new).collect::<Result<_, _>>()?;
    let lists = Lists {
        tools: Arc::new(List::new(tools, profile)?),
        prompts: Arc::new(List::new(offered.prompts, profile)?),
        resources: Arc::new(List::new(offered.resources, profile)?),
        templates: Arc::new(List::new(offered.templates, profile)?),
    };
    lists.tools.iter().for_each(RegisteredTool::warn_without_description);
    Ok(lists)
}

/// Returns the sealer for the state of this audience.
fn sealing(
    keys: Keys,
    audience: String,
    instances: usize,
    limits: &Limits,
    clock: &Clock,
) -> Result<Sealing, BuildError> {
    let has_codec = matches!(keys, Keys::Codec(_));
    let sealer = match keys {
        Keys::Ephemeral if instances > 1 => {
            return Err(BuildError(format!(
                "{instances} instances cannot finish each other's calls under random keys: give each the same key ring \
                 with `.keys(..)`; `antiphon keygen` makes a key"
            )));
        }
        Keys::Ephemeral => Sealer::new(&KeyRing::random()?, &audience),
        // With an empty audience, state of any other server would open here.
        _ if audience.is_empty() => {
            return Err(BuildError(
                "a key ring needs a named server, or an audience: use `.audience(..)`".to_owned(),
            ));
        }
        Keys::Ring(ring) => {
            check_time(&ring, seconds(clock.now())).map_err(|error| BuildError(error.to_string()))?;
            Sealer::new(&ring, &audience)
        }
        Keys::Codec(codec) => Sealer::with_codec(codec, &audience),
    };
    // Claims and padding add an eighth and some; base64 adds a third.
    let state = limits.state_after_effect();
    let claims = state.saturating_add(state / 8).saturating_add(1024);
    let max_token_len = (claims / 3).saturating_mul(4).saturating_add(64);
    Ok(Sealing::new(sealer, audience, max_token_len, has_codec))
}

/// Returns the name and version that stand in every result.
fn server_info(info: &Implementation) -> Result<ServerInfo, BuildError> {
    let mut members = Map::new();
    let info = serde_json::to_value(info).map_err(|fault| BuildError(fault.to_string()))?;
    members.insert(meta_keys::SERVER_INFO.into(), info);
    let members = Meta(members);
    Ok(ServerInfo { raw: raw(&members)?, members })
}
