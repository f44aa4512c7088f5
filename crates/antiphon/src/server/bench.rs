//! What the test bench sets and wants to know.

use super::{OnExpired, ReplayCheck, ReplayFault, Server, ServerBuilder, builder::Keys};
use crate::Clock;
use antiphon_seal::KeyRing;
use std::time::Duration;

/// How long the state of one definition lives, and what becomes of it then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    /// One round.
    pub(crate) round: Duration,
    /// The whole call, if it is bounded.
    pub(crate) call: Option<Duration>,
    pub(crate) on_expired: OnExpired,
}

impl Server {
    /// Of the tool or prompt of this name, or the resource or template of this URI.
    pub(crate) fn lifetime(&self, name: &str) -> Lifetime {
        let registry = self.0.registry.load();
        let lists = &registry.lists;
        let settings = (lists.tools.get(name).map(|found| &found.tool.settings))
            .or_else(|| lists.prompts.get(name).map(|found| &found.settings))
            .or_else(|| lists.resources.get(name).map(|found| &found.settings))
            .or_else(|| {
                let mut templates = lists.templates.iter();
                templates.find(|found| found.variables(name).is_some()).map(|found| &found.settings)
            });
        Lifetime {
            round: settings.and_then(|found| found.answer_within).unwrap_or(self.0.answer_within),
            call: self.0.call_within,
            on_expired: self.0.on_expired,
        }
    }
}

impl ServerBuilder {
    /// With this clock, and with this key ring unless there is a codec, which is then tested too. Every handler that asks
    /// runs twice, and `report` hears where it does not come to the same; `causes` hears why requests fail.
    pub(crate) fn on_bench(
        self,
        ring: KeyRing,
        clock: Clock,
        report: impl Fn(&ReplayFault) + Send + Sync + 'static,
        causes: impl Fn(String) + Send + Sync + 'static,
    ) -> Self {
        let sealed = if matches!(self.keys, Keys::Codec(_)) { self } else { self.keys(ring) };
        let mut builder = sealed.clock(clock).replay_check(ReplayCheck::Always).on_replay_fault(report);
        builder.replay.causes = Some(Box::new(causes));
        builder
    }
}
