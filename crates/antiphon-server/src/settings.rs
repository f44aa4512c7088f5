//! What tools, prompts and resources have in common when they ask.

use antiphon_engine::Migration;
use antiphon_wire::AskSupport;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// How something that may ask is admitted and sealed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) version: u32,
    pub(crate) needs: AskSupport,
    pub(crate) answer_within: Option<Duration>,
    pub(crate) on_version: OnVersion,
    pub(crate) migration: Migration,
    pub(crate) lenient_replay: bool,
    pub(crate) scopes: Vec<String>,
    /// It was said that a step runs before a question that is not among the needs.
    pub(crate) order_reported: Arc<AtomicBool>,
}

/// What becomes of a call that was begun under another version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnVersion {
    /// Every answer and every step that still fits is kept. The default.
    #[default]
    Keep,
    /// It is refused; the client begins again.
    Reject,
    /// It begins again by itself: nothing of it is kept. It is the same call: its steps run again under the same idempotency
    /// keys, and its legs go on to count.
    Restart,
}

/// The setters that tools, prompts, resources and templates share.
macro_rules! setters {
    ($type:ident) => {
        impl $type {
            /// What the caller's access token must hold, besides what the
            /// [`ResourceServer`](crate::serve::http::auth::ResourceServer) demands of every request. Checked on every
            /// leg, before the state is opened; a caller without is refused with 403 and told which scopes to get. Over
            /// HTTP only: on stdio nobody is authenticated. Lists name it to everybody.
            #[must_use]
            pub fn scopes<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
                self.settings.scopes.extend(scopes.into_iter().map(Into::into));
                self
            }

            /// What will surely be asked: a client that did not declare all of this is refused before the first line.
            #[must_use]
            pub fn needs(mut self, needs: antiphon_wire::AskSupport) -> Self {
                self.settings.needs = needs;
                self
            }

            /// How long the person may take for one round. Default: the server's, ten minutes.
            #[must_use]
            pub fn answer_within(mut self, time: std::time::Duration) -> Self {
                self.settings.answer_within = Some(time);
                self
            }

            /// Its version, sealed into its state. Default 0.
            #[must_use]
            pub fn version(mut self, version: u32) -> Self {
                self.settings.version = version;
                self
            }

            /// What becomes of calls that were begun under another version. Default: what still fits is kept.
            #[must_use]
            pub fn on_version(mut self, on_version: crate::OnVersion) -> Self {
                self.settings.on_version = on_version;
                self
            }

            /// What this version does with steps that another one has recorded.
            #[must_use]
            pub fn migrate(mut self, migration: antiphon_engine::Migration) -> Self {
                self.settings.migration = migration;
                self
            }

            /// Recorded steps that the handler does not come to any more are a warning in the log, not the end of the
            /// call.
            #[must_use]
            pub fn lenient_replay(mut self) -> Self {
                self.settings.lenient_replay = true;
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
            /// What it is called, for people.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// A picture for it; several for several sizes or backgrounds.
            #[must_use]
            pub fn icon(mut self, icon: antiphon_wire::Icon) -> Self {
                self.definition.icons.push(icon);
                self
            }

            /// Its `_meta`. Keys have a prefix of your own, such as `com.example/`.
            #[must_use]
            pub fn meta(mut self, meta: antiphon_wire::Meta) -> Self {
                self.definition.meta = Some(meta);
                self
            }
        }
    };
}
pub(crate) use definition_setters;
