#![doc = include_str!("lib.md")]

mod annotations;
mod answer;
pub mod arguments;
mod ask;
mod capability;
mod challenge;
mod completion;
mod content;
mod discover;
mod error;
pub mod extension;
mod foreign_text;
mod form;
pub mod framing;
pub mod header;
mod id;
mod implementation;
mod known_ask;
mod legacy;
pub mod lenient;
mod list_result;
#[doc(hidden)]
pub mod lock;
mod members;
mod message;
mod meta;
pub mod method;
mod notification;
mod outcome;
pub mod pacing;
mod plain_text;
mod prompt;
mod reader;
mod resource;
mod sampling;
mod secure_url;
pub mod sse;
mod subscription;
mod tag;
mod task;
mod tool;
mod trace_context;
mod unknown_ask;
pub mod uri_template;
mod version;
mod walk;

pub use annotations::{Annotations, Role};
pub use answer::{Action, ElicitResult, InputResponses, ListRootsResult, Root};
pub use ask::{AskKind, ElicitRequest, InputRequest, InputRequests};
pub use capability::{AskSupport, ClientCapabilities, ServerCapabilities};
pub use challenge::Challenge;
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext, CompletionReference,
};
pub use content::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use discover::{CacheScope, DiscoverResult, Ttl};
pub use error::{ErrorCode, ErrorObject};
pub use foreign_text::{FOREIGN_TEXT_LIMIT, ForeignText, escaped, is_escaped};
pub use form::{Choice, FieldFault, FieldKind, FormField, FormSchema, TextFormat, secret_in};
pub use id::RequestId;
pub use implementation::{Icon, IconTheme, Implementation};
pub use legacy::{
    DraftTaskResult, ElicitationCompleteParams, InitializeParams, InitializeResult, LegacyAsk,
    LegacyCreateTaskResult, LegacyTask, ListTasksResult, RelatedTaskMetadata, SetLevelParams,
    SubscribeParams, TaskInputParams, TasksCapability, UrlElicitations, elicitation_id_of, progress_token_of,
    related_task_of, with_related_task,
};
pub use message::{
    Incoming, MAX_DEPTH, Notification, Request, Response, Unreadable, write_error, write_notification,
    write_request, write_result,
};
pub use meta::{LogLevel, Meta, ProgressToken, RequestMeta, keys as meta_keys};
pub use notification::{CancelledParams, LogMessageParams, ProgressParams};
pub use outcome::{InputRequiredResult, NeitherAskNorState, Outcome, OutcomeFault};
pub use prompt::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub use reader::{RequestParams, StringMember, UniqueNames, WholeRequest};
pub use resource::{
    BlobOrText, ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceContents, ResourceLink, ResourceTemplate,
};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, ModelHint, ModelPreferences, SamplingBlock, SamplingContent,
    SamplingMessage, ToolChoice,
};
pub use secure_url::check_secure;
pub use subscription::{
    AcknowledgedParams, ListChangedParams, ListenParams, ListenResult, ResourceUpdatedParams,
    SubscriptionFilter,
};
pub use tag::Complete;
pub use task::{
    CreateTaskResult, DetailedTask, GetTaskResult, TASKS_EXTENSION, Task, TaskAcknowledged, TaskDetail,
    TaskParams, TaskStatus, UpdateTaskParams,
};
pub use tool::{
    CallToolParams, CallToolResult, JsonSchema, ListToolsResult, PageParams, TaskMetadata, TaskSupport, Tool,
    ToolAnnotations,
};
pub use trace_context::TraceContext;
pub use unknown_ask::UnknownAsk;
pub use version::ProtocolVersion;

#[doc(hidden)]
pub use known_ask::{KnownAsk, KnownKind};
