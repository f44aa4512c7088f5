//! The types of the protocol that the signatures of this crate need. Codecs, framings and the remaining types are in the
//! crate `antiphon-wire`, for bridges and tools of your own.
//!
//! | for | types |
//! |---|---|
//! | tools | [`Tool`], [`ToolAnnotations`], [`JsonSchema`], [`CallToolResult`], [`ListToolsResult`] |
//! | prompts | [`Prompt`], [`PromptArgument`], [`PromptMessage`], [`GetPromptResult`], [`ListPromptsResult`] |
//! | resources | [`Resource`], [`ResourceTemplate`], [`ResourceContents`], [`ReadResourceResult`], lists of both |
//! | content | [`ContentBlock`] and its kinds, [`Annotations`], [`Role`], [`Meta`], [`Icon`] |
//! | questions | [`FormSchema`], [`FormField`], [`ElicitRequest`], [`CreateMessageParams`], [`InputRequests`], .. |
//! | answers | [`ElicitResult`], [`CreateMessageResult`], [`ListRootsResult`], [`InputResponses`] |
//! | a client and a server | [`AskSupport`], [`ProtocolVersion`], [`Implementation`], [`DiscoverResult`], capabilities |
//! | completions, logs, subscriptions, caches | [`CompletionReference`], [`LogLevel`], [`SubscriptionFilter`], [`Ttl`], .. |
//! | tasks | [`DetailedTask`], [`Task`], [`TaskStatus`], [`TaskDetail`], [`TaskSupport`], [`TasksCapability`] |
//! | errors | [`ErrorObject`], [`ErrorCode`], [`OutcomeFault`], [`NeitherAskNorState`] |
//! | text of a peer in a log, an error, a terminal | [`ForeignText`], [`escaped`], [`is_escaped`], [`secret_in`] |
//! | transports of your own | [`Incoming`], [`Request`], [`Response`], [`Notification`], [`RequestId`], [`ParamHeaders`] |

pub use antiphon_wire::{
    Action, Annotations, AskKind, AskSupport, AudioContent, BlobOrText, CacheScope, CallToolResult, Choice,
    ClientCapabilities, CompleteResult, Completion, CompletionContext, CompletionReference, ContentBlock,
    CreateMessageParams, CreateMessageResult, DetailedTask, DiscoverResult, ElicitRequest, ElicitResult,
    EmbeddedResource, ErrorCode, ErrorObject, FieldFault, FieldKind, ForeignText, FormField, FormSchema,
    GetPromptResult, Icon, IconTheme, ImageContent, Implementation, Incoming, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, JsonSchema, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListRootsResult, ListToolsResult, LogLevel, Meta, ModelHint, ModelPreferences,
    NeitherAskNorState, Notification, OutcomeFault, ProgressToken, Prompt, PromptArgument, PromptMessage,
    ProtocolVersion, ReadResourceResult, Request, RequestId, Resource, ResourceContents, ResourceLink,
    ResourceTemplate, Response, Role, Root, SamplingBlock, SamplingContent, SamplingMessage,
    ServerCapabilities, SubscriptionFilter, Task, TaskDetail, TaskStatus, TaskSupport, TasksCapability,
    TextContent, TextFormat, Tool, ToolAnnotations, ToolChoice, ToolResultContent, ToolUseContent, Ttl,
    UnknownAsk, Unreadable, escaped,
    header::params::{ParamHeader, ParamHeaderFault, ParamHeaders},
    is_escaped, secret_in,
};
