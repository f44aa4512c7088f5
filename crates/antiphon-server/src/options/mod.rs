//! Settings of a server and of its offers, and its clock.

pub(crate) mod limits;

use crate::errors::BuildError;
use antiphon_engine::Migration;
use antiphon_seal::Principal;
use antiphon_wire::{AskSupport, escaped, lock::Lock};
use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The settings by which a request is admitted and sealed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) version: u32,
    pub(crate) needs: AskSupport,
    pub(crate) answer_timeout: Option<Duration>,
    /// The time of the handler in one leg; `None` is the server's.
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_version: OnVersion,
    pub(crate) migration: Migration,
    pub(crate) lenient_replay: bool,
    /// The protection against a second run; `None` is the server's.
    pub(crate) at_most_once: Option<Level>,
    /// True if a leg whose run died is run again.
    pub(crate) rerun_after_crash: bool,
    pub(crate) scopes: Vec<String>,
    /// The callers whose answers are accepted.
    pub(crate) approved_by: ApprovedBy,
    /// The rule by which calls become tasks.
    pub(crate) task: TaskMode,
    /// The time after which a call becomes a task by itself.
    pub(crate) promote_after: Option<Duration>,
    /// True after a warning that a step runs before a question outside of the needs.
    pub(crate) order_reported: Arc<AtomicBool>,
    /// True after a first leg that asked, held a step, or waited for its record: the next first leg has a tracker from its first
    /// poll.
    pub(crate) needs_tracker: Arc<AtomicBool>,
}

impl Settings {
    /// Checks that the server has a store if the offer with this key needs one.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn check_store(&self, key: &str, has_store: bool) -> Result<(), BuildError> {
        if has_store || self.at_most_once.is_none_or(|level| level == Level::None) {
            return Ok(());
        }
        Err(BuildError(format!(
            "`{}` has `single_use` or `write_ahead`, which need a store of calls: set one with `.store(..)`",
            escaped(key)
        )))
    }
}

/// The protection of a call against a second run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[default]
    None,
    SingleUse,
    WriteAhead,
}

/// The rule by which the calls of a tool become tasks, which go on while no client is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskMode {
    /// Calls never become tasks. The default.
    #[default]
    Never,
    /// A call becomes a task where its handler awaits [`Ctx::into_task`](crate::Ctx::into_task), or after
    /// [`Tool::promote_after`](crate::Tool::promote_after), if the client declares the extension. In a session of 2025-11-25 it is
    /// a task from its beginning if the client wants one. For other clients it runs as any call does.
    Optional,
    /// Every call is a task from its beginning. A client that does not declare the extension is refused with -32021, and one
    /// that wants no task in a session with -32601.
    Required,
}

/// The rule that says whose answers are accepted.
#[derive(Clone, Default)]
pub(crate) struct ApprovedBy(Option<Arc<Approves>>);

type Approves = dyn Fn(&Principal) -> bool + Send + Sync;

impl ApprovedBy {
    /// Returns whether there is a rule.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether an answer of this caller is accepted. A rule accepts nobody who is not authenticated.
    pub(crate) fn permits(&self, principal: Option<&Principal>) -> bool {
        self.0.as_ref().is_none_or(|approves| principal.is_some_and(|principal| approves(principal)))
    }

    pub(crate) fn rule(approves: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(approves)))
    }
}

impl fmt::Debug for ApprovedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApprovedBy").finish_non_exhaustive()
    }
}

/// The treatment of a call that began under another version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnVersion {
    /// Every answer and step that still fits is kept. The default.
    #[default]
    Keep,
    /// The call is refused; the client begins again.
    Reject,
    /// The call begins again without its record. It is the same call: its steps run again with the same idempotency
    /// keys, and its legs continue to count.
    Restart,
}

/// The setters that tools, prompts, resources and templates share.
macro_rules! setters {
    ($type:ident) => {
        impl $type {
            /// Sets the scopes that the caller's access token needs, in addition to those that the
            /// [`ResourceServer`](crate::serve::http::auth::ResourceServer) requires for every request. They are
            /// checked on every leg, before the state is opened. A caller without them is refused with 403 and a list
            /// of the required scopes. They apply over HTTP only: on stdio nobody is authenticated. Lists show the item
            /// to all callers, unless [`visible_if`](Self::visible_if) is set. Default: none.
            #[must_use]
            pub fn scopes<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
                self.settings.scopes.extend(scopes.into_iter().map(Into::into));
                self
            }

            /// Sets the rule that says who may answer the questions of this handler to a person. An answer of another
            /// caller, or of a caller without authentication, is not accepted: the request gets an error, the state stays
            /// valid, and the question stays open. In a session, where nobody else can answer, the question is not asked.
            /// The rule is called on each leg that brings an answer, so it must be fast. Default: everybody may answer who
            /// may call.
            ///
            /// A [receipt](crate::Ctx::receipt) names the person who answered.
            #[must_use]
            pub fn approved_by(
                mut self,
                rule: impl Fn(&antiphon_seal::Principal) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.settings.approved_by = crate::options::ApprovedBy::rule(rule);
                self
            }

            /// Sets the capabilities that the handler requires: a client that did not declare all of them is refused
            /// before the handler runs. Default: none.
            #[must_use]
            pub fn needs(mut self, needs: antiphon_wire::AskSupport) -> Self {
                self.settings.needs = needs;
                self
            }

            /// Sets the time for a person to answer one round. Default: the server's, ten minutes.
            #[must_use]
            pub fn answer_timeout(mut self, time: std::time::Duration) -> Self {
                self.settings.answer_timeout = Some(time);
                self
            }

            /// Sets the maximum time of the handler in one leg: without the time of people, also in a session; and in a
            /// task, where a handler otherwise has as much time as the task exists. The call then ends as after
            /// [`Limits::handler_timeout`](crate::Limits::handler_timeout), with an error that says so. Default: that limit, five minutes.
            #[must_use]
            pub fn timeout(mut self, time: std::time::Duration) -> Self {
                self.settings.timeout = Some(time);
                self
            }

            /// Sets the version, which is sealed into the state. Default 0.
            #[must_use]
            pub fn version(mut self, version: u32) -> Self {
                self.settings.version = version;
                self
            }

            /// Sets the treatment of calls that began under another version. Default:
            /// [`OnVersion::Keep`](crate::OnVersion::Keep).
            #[must_use]
            pub fn on_version(mut self, on_version: crate::options::OnVersion) -> Self {
                self.settings.on_version = on_version;
                self
            }

            /// Sets the changes to steps that another version has recorded. Default: none.
            #[must_use]
            pub fn migrate(mut self, migration: antiphon_engine::Migration) -> Self {
                self.settings.migration = migration;
                self
            }

            /// Sets whether a handler may leave out recorded steps: a warning is logged. Default: `false`; the call ends
            /// with an error.
            #[must_use]
            pub fn lenient_replay(mut self, on: bool) -> Self {
                self.settings.lenient_replay = on;
                self
            }

            /// Sets whether each state of a call is used at most once: see
            /// [`ServerBuilder::single_use`](crate::ServerBuilder::single_use). Default: the server's.
            #[must_use]
            pub fn single_use(mut self, on: bool) -> Self {
                self.settings.at_most_once =
                    Some(if on { crate::options::Level::SingleUse } else { crate::options::Level::None });
                self
            }

            /// Sets whether the start and the end of each step are stored: see
            /// [`ServerBuilder::write_ahead`](crate::ServerBuilder::write_ahead). It includes
            /// [`single_use`](Self::single_use). Default: the server's.
            #[must_use]
            pub fn write_ahead(mut self, on: bool) -> Self {
                self.settings.at_most_once =
                    Some(if on { crate::options::Level::WriteAhead } else { crate::options::Level::None });
                self
            }

            /// Sets whether a leg whose process died runs again, with all steps that have no stored outcome. Such steps
            /// run at least once, under the same idempotency key. Default: `false`; the call is refused as
            /// `outcome_unknown`.
            #[must_use]
            pub fn rerun_after_crash(mut self, on: bool) -> Self {
                self.settings.rerun_after_crash = on;
                self
            }
        }
    };
}
pub(crate) use setters;

/// The setters that all definitions share.
macro_rules! definition_setters {
    ($type:ident) => {
        impl $type {
            /// Sets the display name.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// Adds an icon. Several icons serve several sizes or backgrounds.
            #[must_use]
            pub fn icon(mut self, icon: antiphon_wire::Icon) -> Self {
                self.definition.icons.push(icon);
                self
            }

            /// Adds members to the `_meta`; a member of the same name is replaced. Use a prefix of your own for its keys, such as
            /// `com.example/`. Default: none.
            #[must_use]
            pub fn meta(mut self, meta: antiphon_wire::Meta) -> Self {
                self.definition.meta.get_or_insert_default().0.extend(meta.0);
                self
            }
        }
    };
}
pub(crate) use definition_setters;

/// The source of a server's time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Returns the system's clock.
    pub fn system() -> Self {
        Self(Arc::new(SystemTime::now))
    }

    /// Returns a clock that does not advance until the test moves it.
    pub fn manual(start: SystemTime) -> (Self, ManualClock) {
        let hand = ManualClock(Arc::new(Lock::new(start)));
        let read = hand.clone();
        (Self(Arc::new(move || read.now())), hand)
    }

    /// Returns a clock that shows the time that `read` returns.
    pub fn from_fn(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Returns the time.
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// The hand of a [manual](Clock::manual) clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Lock<SystemTime>>);

impl ManualClock {
    /// Returns the time of the clock.
    pub fn now(&self) -> SystemTime {
        *self.0.lock()
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        *self.0.lock() += by;
    }

    /// Moves the clock back, to test differing clocks of other machines.
    pub fn turn_back(&self, by: Duration) {
        *self.0.lock() -= by;
    }
}

/// Returns a moment in Unix milliseconds.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the whole seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
