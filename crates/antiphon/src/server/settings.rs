//! What tools, prompts and resources have in common when they ask.

use antiphon_wire::AskSupport;
use std::time::Duration;

/// How something that may ask is admitted and sealed.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) version: u32,
    pub(super) needs: AskSupport,
    pub(super) answer_within: Option<Duration>,
}

/// The setters that tools, prompts, resources and templates share.
macro_rules! setters {
    ($type:ident) => {
        impl $type {
            /// Its version, sealed into its state. Default 0.
            #[must_use]
            pub fn version(mut self, version: u32) -> Self {
                self.settings.version = version;
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
        }
    };
}
pub(super) use setters;

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
pub(super) use definition_setters;
