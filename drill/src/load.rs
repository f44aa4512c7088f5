//! The load of a run: calls, or tasks.

use crate::{
    fault::Faults,
    findings::{Findings, Rule},
    fleet::Fleet,
    history::History,
    level::Level,
    log::Subject,
    options::Options,
    person,
    proxy::Proxy,
    report::{completed, report},
    tasks::{self, TaskHistory, TaskScript},
};
use std::{sync::Arc, time::Duration};

/// The time for which each person thinks, per person, in milliseconds: people share the processors.
const THINKS: u64 = 8;

/// The load of a run, with its log.
#[derive(Debug)]
pub(crate) enum Load {
    Calls(Arc<History>),
    Tasks(Arc<TaskHistory>),
}

/// The script of all people.
#[derive(Debug)]
pub(crate) enum Script {
    Calls(person::Script),
    Tasks(TaskScript),
}

impl Script {
    /// Makes the call or task of this number.
    pub(crate) async fn run(&self, number: u64) {
        match self {
            Self::Calls(script) => script.call(number).await,
            Self::Tasks(script) => script.task(number).await,
        }
    }
}

impl Load {
    /// Returns the load of a run with these options.
    pub(crate) fn of(options: &Options) -> Self {
        if options.tasks { Self::Tasks(Arc::default()) } else { Self::Calls(Arc::default()) }
    }

    /// Returns the log.
    pub(crate) fn log(&self) -> Arc<dyn Subject> {
        match self {
            Self::Calls(history) => Arc::clone(history) as Arc<dyn Subject>,
            Self::Tasks(history) => Arc::clone(history) as Arc<dyn Subject>,
        }
    }

    /// Returns the rule about the rows of the store.
    pub(crate) fn rule_about_rows(&self) -> Rule {
        match self {
            Self::Calls(_) => Rule::Rows,
            Self::Tasks(_) => Rule::TaskRows,
        }
    }

    /// Returns the script of all people.
    pub(crate) fn script(&self, options: &Options, fleet: &Arc<Fleet>) -> Script {
        let (seed, has_faults) = (options.seed, !options.crash);
        let fleet = Arc::clone(fleet);
        // With a mutant, calls may have no end.
        let limit = Duration::from_secs(if options.mutant.is_some() { 30 } else { 60 } + options.people / 4);
        let thinks = if has_faults { options.people * THINKS } else { 0 };
        match self {
            Self::Calls(history) => Script::Calls(person::Script {
                seed,
                fleet: Arc::clone(&fleet),
                proxy: Arc::new(Proxy::new(fleet, Arc::clone(history) as _, seed, has_faults)),
                history: Arc::clone(history),
                plan: options.crash.then(|| "qss".to_owned()),
                repeats: has_faults,
                limit,
                thinks,
            }),
            Self::Tasks(history) => Script::Tasks(TaskScript {
                seed,
                proxy: Arc::new(Proxy::new(Arc::clone(&fleet), Arc::clone(history) as _, seed, true)),
                history: Arc::clone(history),
                fleet,
                // A step that takes longer than the lease is interrupted again and again while there are faults.
                limit: if options.mutant.is_some() { limit } else { limit * 3 },
                thinks,
            }),
        }
    }

    /// Checks the rules about all calls or tasks together.
    pub(crate) fn conclude(&self, findings: &mut Findings) {
        match self {
            Self::Calls(_) => check_liveness(findings),
            Self::Tasks(_) => tasks::conclude(findings),
        }
    }

    /// Returns the report of a run.
    pub(crate) fn report(&self, findings: &Findings, faults: &Faults, time: Duration) -> String {
        match self {
            Self::Calls(history) => report(findings, history, faults, time),
            Self::Tasks(history) => tasks::report(findings, history, faults, time),
        }
    }
}

/// A run in which few calls complete proves nothing.
fn check_liveness(findings: &mut Findings) {
    for level in Level::ALL {
        let (done, all) = completed(findings, level);
        if all == 0 || done * 100 < all * 99 {
            findings.breaks(Rule::Liveness, format!("{}: {done} of {all} complete", level.tool()));
        }
    }
}
