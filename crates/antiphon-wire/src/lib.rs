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
mod legacy;
pub mod lenient;
mod members;
mod message;
mod meta;
pub mod method;
mod outcome;
pub mod pacing;
mod prompt;
mod reader;
mod resource;
mod sampling;
pub mod sse;
mod subscription;
mod tag;
mod task;
mod tool;
mod unknown_ask;
pub mod uri_template;
mod version;
mod walk;

pub use annotations::{Annotations, Icon, IconTheme, Implementation, Role};
pub use answer::{Action, ElicitResult, InputResponses, ListRootsResult, Root};
pub use ask::{AskKind, ElicitRequest, InputRequest, InputRequests};
pub use capability::{AskSupport, ClientCapabilities, ServerCapabilities};
pub use challenge::{Challenge, check_secure};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext, CompletionReference,
};
pub use content::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use discover::{CacheScope, DiscoverResult, Ttl};
pub use error::{ErrorCode, ErrorObject, RequestId};
pub use foreign_text::{FOREIGN_TEXT_LIMIT, ForeignText, escaped, is_escaped};
pub use form::{Choice, FieldFault, FieldKind, FormField, FormSchema, TextFormat, secret_in};
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
pub use meta::{LogLevel, Meta, ProgressToken, RequestMeta, TraceContext, keys as meta_keys};
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
pub use subscription::{
    AcknowledgedParams, CancelledParams, ListChangedParams, ListenParams, ListenResult, LogMessageParams,
    ProgressParams, ResourceUpdatedParams, SubscriptionFilter,
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
pub use unknown_ask::UnknownAsk;
pub use version::ProtocolVersion;

#[doc(hidden)]
pub use outcome::{KnownAsk, KnownKind};

#[doc(hidden)]
pub mod lock {
    //! A lock that no panic closes, for the other crates of antiphon.

    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// A mutex that ignores poisoning. Its users change a value in steps that leave it whole, so a panic of another thread is no reason to
    /// refuse the value.
    #[derive(Debug, Default)]
    pub struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        /// Returns a lock around a value.
        pub const fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        /// Waits for the lock, and returns the value.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Returns the value of a lock that nobody else has.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
        }

        /// Returns the value of a lock that is no longer needed.
        pub fn into_inner(self) -> T {
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
