//! What a function is marked as.

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

    /// The attribute that marks it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// With an article, for people.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Tool => "a tool",
            Self::Prompt => "a prompt",
            Self::Resource => "a resource",
        }
    }

    /// The kind that this attribute marks, by the last part of its path.
    pub(super) fn of(attribute: &Attribute) -> Option<Self> {
        let last = &attribute.path().segments.last()?.ident;
        Self::ALL.into_iter().find(|kind| last == kind.word())
    }

    /// The settings that may stand in the attribute.
    pub(super) fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &[
                "name",
                "title",
                "description",
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "version",
                "answer_within",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "scopes",
            ],
            Self::Prompt => &[
                "name",
                "title",
                "description",
                "version",
                "answer_within",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "scopes",
            ],
            Self::Resource => &[
                "name",
                "title",
                "description",
                "mime_type",
                "version",
                "answer_within",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "scopes",
            ],
        }
    }

    /// The trait of what a marked function returns.
    pub(super) fn future(self) -> Ident {
        self.named("ToolFuture", "PromptFuture", "ResourceFuture")
    }

    /// The trait that makes the definition.
    pub(super) fn define(self) -> Ident {
        self.named("DefineTool", "DefinePrompt", "DefineResource")
    }

    /// What the function's result becomes on the wire.
    pub(super) fn result(self) -> Ident {
        self.named("CallToolResult", "GetPromptResult", "ReadResourceResult")
    }

    /// What makes a parameter an argument.
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
