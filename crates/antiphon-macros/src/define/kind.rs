//! The kinds of marked functions.

use proc_macro2::{Ident, Span};
use syn::Attribute;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// Returns the name of the attribute.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// Returns the name with an article, for messages.
    pub(super) fn with_article(self) -> &'static str {
        match self {
            Self::Tool => "a tool",
            Self::Prompt => "a prompt",
            Self::Resource => "a resource",
        }
    }

    /// Returns the kind that an attribute marks, by the last segment of its path.
    pub(super) fn of(attribute: &Attribute) -> Option<Self> {
        let last = &attribute.path().segments.last()?.ident;
        Self::ALL.into_iter().find(|kind| last == kind.name())
    }

    /// Returns the settings that the attribute may have.
    pub(super) fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &[
                "name",
                "title",
                "description",
                "icon",
                "meta",
                "ui",
                "ui_visibility",
                "returns",
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "additional",
                "version",
                "answer_timeout",
                "timeout",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "single_use",
                "write_ahead",
                "rerun_after_crash",
                "scopes",
                "approved_by",
                "visible_if",
                "listed_as",
                "task",
                "promote_after",
            ],
            Self::Prompt => &[
                "name",
                "title",
                "description",
                "icon",
                "meta",
                "version",
                "answer_timeout",
                "timeout",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "single_use",
                "write_ahead",
                "rerun_after_crash",
                "scopes",
                "approved_by",
                "visible_if",
                "listed_as",
            ],
            Self::Resource => &[
                "name",
                "title",
                "description",
                "mime_type",
                "size",
                "icon",
                "meta",
                "audience",
                "priority",
                "last_modified",
                "cache",
                "version",
                "answer_timeout",
                "timeout",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "single_use",
                "write_ahead",
                "rerun_after_crash",
                "scopes",
                "approved_by",
                "visible_if",
                "listed_as",
            ],
        }
    }

    /// Returns the trait of the future that a marked function returns.
    pub(super) fn future(self) -> Ident {
        self.named("ToolFuture", "PromptFuture", "ResourceFuture")
    }

    /// Returns the trait that creates the definition.
    pub(super) fn define(self) -> Ident {
        self.named("DefineTool", "DefinePrompt", "DefineResource")
    }

    /// Returns the wire type of the result.
    pub(super) fn result(self) -> Ident {
        self.named("CallToolResult", "GetPromptResult", "ReadResourceResult")
    }

    /// Returns the runtime function that describes an argument.
    pub(super) fn slot(self) -> Ident {
        self.named("argument", "text", "variable")
    }

    fn named(self, tool: &str, prompt: &str, resource: &str) -> Ident {
        let name = match self {
            Self::Tool => tool,
            Self::Prompt => prompt,
            Self::Resource => resource,
        };
        Ident::new(name, Span::mixed_site())
    }
}
