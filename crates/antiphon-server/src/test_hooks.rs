//! Access for the test bench: settings that only tests make, and values that only tests read.

use crate::{Clock, OnExpired, ReplayCheck, ReplayFault, Server, ServerBuilder, TaskMode, builder::Keys};
use antiphon_seal::KeyRing;
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
    let registry = inner.registry.load();
    let lists = &registry.lists;
    let settings = (lists.tools.get(name).map(|found| &found.tool.settings))
        .or_else(|| lists.prompts.get(name).map(|found| &found.settings))
        .or_else(|| lists.resources.get(name).map(|found| &found.settings))
        .or_else(|| {
            let mut templates = lists.templates.iter();
            templates.find(|found| found.variables(name).is_some()).map(|found| &found.settings)
        });
    Lifetime {
        round: settings.and_then(|found| found.answer_timeout).unwrap_or(inner.runtime.answer_timeout),
        call: inner.runtime.call_timeout,
        on_expired: inner.runtime.on_expired,
    }
}

/// Returns the builder with this mode for the tools that it has so far.
pub fn with_task_mode(builder: ServerBuilder, mode: TaskMode) -> ServerBuilder {
    builder.offer(move |_, offered| {
        offered.tools.iter_mut().for_each(|tool| tool.settings.task = mode);
        Ok(())
    })
}

/// Returns the builder with this clock, and with this key ring unless there is a codec, which is then tested too. Every
/// handler that asks runs twice. `report` receives the places where the second run differs; `causes` the reasons for which
/// requests fail.
pub fn on_bench(
    builder: ServerBuilder,
    ring: KeyRing,
    clock: Clock,
    report: impl Fn(&ReplayFault) + Send + Sync + 'static,
    causes: impl Fn(String) + Send + Sync + 'static,
) -> ServerBuilder {
    let sealed = if matches!(builder.keys, Keys::Codec(_)) { builder } else { builder.keys(ring) };
    let mut builder = sealed.clock(clock).replay_check(ReplayCheck::Always).on_replay_fault(report);
    builder.replay.causes = Some(Box::new(causes));
    builder
}
