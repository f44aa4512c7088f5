//! Access for the test bench: settings that only tests make, and values that only tests read.

use crate::{
    offer::{offers::Lists, resource::most_literal},
    options::{Clock, Level, Settings, TaskMode, limits::OnExpired},
    runtime::replay::{ReplayCheck, ReplayFault},
    server::{
        Server,
        builder::{Keys, ServerBuilder},
        service::ServerSession,
    },
};
use antiphon_seal::KeyRing;
use antiphon_store::{StoreIdentity, StoreReach};
use std::time::Duration;

/// The lifetime of the state of one definition, and the treatment of state that has expired.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// The lifetime of one round.
    pub round: Duration,
    /// The lifetime of the whole call, if it is limited.
    pub call: Option<Duration>,
    /// The treatment of state that has expired.
    pub on_expired: OnExpired,
}

/// Returns the lifetime for the tool or prompt of this name, or the resource or template of this URI.
pub fn lifetime(server: &Server, name: &str) -> Lifetime {
    let inner = &server.0;
    let offers = inner.offers.load();
    let settings = settings(&offers.lists, name);
    Lifetime {
        round: settings.and_then(|found| found.answer_timeout).unwrap_or(inner.runtime.answer_timeout),
        call: inner.runtime.call_timeout,
        on_expired: inner.runtime.on_expired,
    }
}

/// The result of a leg whose process died, for one definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// No leg is claimed: it runs again, and so does each request that is sent again.
    RunsAgain,
    /// The leg is claimed, and the next request continues it.
    Continues,
    /// The leg is claimed, and may end as `outcome_unknown`.
    UnknownLeg,
    /// The leg is claimed, and may end as `outcome_unknown` with the name of a step.
    UnknownStep,
}

/// Returns the result of a crash for the definition of this name or URI.
pub fn after_crash(server: &Server, name: &str) -> AfterCrash {
    let inner = &server.0;
    let offers = inner.offers.load();
    let (Some(claims), Some(settings)) = (&inner.runtime.claims, settings(&offers.lists, name)) else {
        return AfterCrash::RunsAgain;
    };
    match claims.level_of(settings) {
        Level::None => AfterCrash::RunsAgain,
        _ if settings.rerun_after_crash => AfterCrash::Continues,
        Level::SingleUse => AfterCrash::UnknownLeg,
        Level::WriteAhead => AfterCrash::UnknownStep,
    }
}

/// Returns the lease of a leg; zero without a store.
pub fn lease(server: &Server) -> Duration {
    server.0.runtime.claims.as_ref().map_or(Duration::ZERO, |claims| claims.options.lease)
}

/// Returns true if a session of an earlier revision may call the definition of this name or URI.
pub fn has_sessions(server: &Server, name: &str) -> bool {
    let offers = server.0.offers.load();
    let settings = settings(&offers.lists, name);
    server.has_sessions() && settings.is_none_or(|found| found.task != TaskMode::Required)
}

/// Returns the key of a question that this session was sent as the request with this id.
pub fn asked_key(session: &ServerSession, id: u64) -> Option<String> {
    session.session.key_of(id)
}

/// Returns the identity of the server's store, if the store is in the memory of the process.
pub fn store_in_memory(server: &Server) -> Option<StoreIdentity> {
    let claims = server.0.runtime.claims.as_ref()?;
    claims.store.identity().filter(|_| claims.store.reach() == StoreReach::Process)
}

fn settings<'a>(lists: &'a Lists, name: &str) -> Option<&'a Settings> {
    (lists.tools.get(name).map(|found| &found.tool.settings))
        .or_else(|| lists.prompts.get(name).map(|found| &found.settings))
        .or_else(|| lists.resources.get(name).map(|found| &found.settings))
        .or_else(|| most_literal(lists.templates.iter(), name, |_| true).map(|(found, _)| &found.settings))
}

/// Returns the builder with this mode for the tools that it has so far.
pub fn with_task_mode(builder: ServerBuilder, mode: TaskMode) -> ServerBuilder {
    builder.offer(move |_, offered| {
        offered.tools.iter_mut().for_each(|tool| tool.settings.task = mode);
        Ok(())
    })
}

/// Returns the builder with this clock, and with this key ring unless there is a codec, which is then tested too. A server
/// without keys of its own is the only instance, so a store in memory is enough. Every handler that asks runs twice. `report` receives the places where the second run differs; `causes` the reasons for which
/// requests fail.
pub fn on_bench(
    builder: ServerBuilder,
    ring: KeyRing,
    clock: Clock,
    report: impl Fn(&ReplayFault) + Send + Sync + 'static,
    causes: impl Fn(String) + Send + Sync + 'static,
) -> ServerBuilder {
    let is_single = builder.at_most_once.single_instance || matches!(builder.keys, Keys::Ephemeral);
    let sealed = if matches!(builder.keys, Keys::Codec(_)) { builder } else { builder.keys(ring) };
    let sealed = sealed.single_instance(is_single);
    let mut builder = sealed.clock(clock).replay_check(ReplayCheck::Always).on_replay_fault(report);
    builder.replay.causes = Some(Box::new(causes));
    builder
}
