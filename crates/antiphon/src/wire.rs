//! The types of the protocol that the signatures of this crate need. Codecs, framings and the remaining types are in the
//! crate `antiphon-wire`, for bridges and tools of your own.

pub use antiphon_wire::{
    Action, Annotations, AskKind, AskSupport, CacheScope, CallToolResult, ClientCapabilities, CompleteResult,
    ContentBlock, DiscoverResult, ElicitRequest, ElicitResult, ErrorCode, ErrorObject, GetPromptResult, Icon,
    Implementation, InputRequest, InputRequests, InputRequiredResult, InputResponses, JsonSchema,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LogLevel, Meta,
    ProgressToken, Prompt, ProtocolVersion, ReadResourceResult, RequestId, Resource, ResourceTemplate, Role,
    ServerCapabilities, SubscriptionFilter, Task, TaskStatus, Tool, ToolAnnotations, Ttl,
};

/// The error of an extension that cannot be declared or used.
pub mod extensions {
    pub use antiphon_wire::extension::InvalidExtension;
}

/// The error of a URI template that cannot be expanded: see [`ResourceTemplate::expand`].
pub mod templates {
    pub use antiphon_wire::uri_template::InvalidTemplate;
}

/// The kinds of content, the contents of resources, and the parts of prompts.
pub mod content {
    pub use antiphon_wire::{
        AudioContent, BlobOrText, EmbeddedResource, IconTheme, ImageContent, PromptArgument, PromptMessage,
        ResourceContents, ResourceLink, TextContent, ToolResultContent, ToolUseContent,
    };
}

/// The schema of a form, and what is wrong with an answer.
pub mod forms {
    pub use antiphon_wire::{Choice, FieldFault, FieldKind, FormField, FormSchema, TextFormat, secret_in};
}

/// Sampling requests and roots: questions that an agent answers.
pub mod sampling {
    pub use antiphon_wire::{
        CreateMessageParams, CreateMessageResult, ListRootsResult, ModelHint, ModelPreferences, Root,
        SamplingBlock, SamplingContent, SamplingMessage, ToolChoice,
    };
}

/// The states of a task in detail.
pub mod tasks {
    pub use antiphon_wire::{DetailedTask, TaskDetail, TaskSupport, TasksCapability};
}

/// Completion of arguments.
pub mod completion {
    pub use antiphon_wire::{Completion, CompletionContext, CompletionReference};
}

/// The text of a peer in a log, an error, a terminal.
pub mod text {
    pub use antiphon_wire::{ForeignText, escaped, is_escaped};
}

/// Messages of JSON-RPC and their headers, and what does not decode: for transports of your own.
pub mod messages {
    pub use antiphon_wire::{
        Incoming, NeitherAskNorState, Notification, OutcomeFault, Request, Response, UnknownAsk, Unreadable,
        header::params::{ParamHeader, ParamHeaderFault, ParamHeaders},
    };
}
