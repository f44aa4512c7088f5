//! The methods of the protocol, by their names on the wire.

/// Requests the versions, capabilities and identity of a server.
pub const DISCOVER: &str = "server/discover";
/// Lists the tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists the prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Gets a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Lists the resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists the resource templates.
pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Completes an argument of a prompt or a variable of a resource template.
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// Opens a subscription to notifications.
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
/// Gets the state of a task. Extension `io.modelcontextprotocol/tasks`.
pub const TASKS_GET: &str = "tasks/get";
/// Sends answers to the questions of a task. Extension `io.modelcontextprotocol/tasks`.
pub const TASKS_UPDATE: &str = "tasks/update";
/// Asks to cancel a task. Extension `io.modelcontextprotocol/tasks`.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// The notification of a task's state. Extension `io.modelcontextprotocol/tasks`.
pub const TASKS_NOTIFICATION: &str = "notifications/tasks";
/// Waits for the result of a task. Only in 2025-11-25, and in the draft after that revision.
pub const TASKS_RESULT: &str = "tasks/result";
/// Lists the tasks of the caller. Only in 2025-11-25, and in the draft after that revision.
pub const TASKS_LIST: &str = "tasks/list";
/// Sends answers to the questions of a task. Only in the draft after 2025-11-25.
pub const TASKS_INPUT_RESPONSE: &str = "tasks/input_response";
/// The notification of a task's status. Only in 2025-11-25, and in the draft after that revision.
pub const TASKS_STATUS: &str = "notifications/tasks/status";
/// An ask: a form or a URL for the person at the client.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// An ask: a message from the client's model. Deprecated in 2026-07-28.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// An ask: the client's root directories. Deprecated in 2026-07-28.
pub const ROOTS_LIST: &str = "roots/list";
/// The handshake of the revisions up to 2025-11-25.
pub const INITIALIZE: &str = "initialize";
/// The notification that the client is ready, after `initialize`. Legacy.
pub const INITIALIZED: &str = "notifications/initialized";
/// Checks that the other side responds. Legacy.
pub const PING: &str = "ping";
/// Sets the lowest level of log messages that the server sends to a client. Legacy.
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// Subscribes to updates of a resource. Legacy.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends the subscription to updates of a resource. Legacy.
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// The notification that the client's root directories changed. Legacy.
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
/// The notification that a person finished the interaction at a URL. Only in 2025-11-25.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// The notification that cancels a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// The notification of a request's progress.
pub const PROGRESS: &str = "notifications/progress";
/// A log message that belongs to a request. Deprecated in 2026-07-28.
pub const MESSAGE: &str = "notifications/message";
/// The first message on a subscription, with the notifications that the server will send.
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// The notification that the list of tools changed.
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
/// The notification that the list of prompts changed.
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
/// The notification that the list of resources, or of resource templates, changed.
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// The notification that the contents of a resource changed.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";

/// The requests and notifications of the core protocol, of both sides and all revisions. No extension may define one of them.
pub const CORE: &[&str] = &[
    DISCOVER,
    TOOLS_LIST,
    TOOLS_CALL,
    PROMPTS_LIST,
    PROMPTS_GET,
    RESOURCES_LIST,
    RESOURCE_TEMPLATES_LIST,
    RESOURCES_READ,
    COMPLETION_COMPLETE,
    SUBSCRIPTIONS_LISTEN,
    ELICITATION_CREATE,
    SAMPLING_CREATE_MESSAGE,
    ROOTS_LIST,
    INITIALIZE,
    INITIALIZED,
    PING,
    LOGGING_SET_LEVEL,
    RESOURCES_SUBSCRIBE,
    RESOURCES_UNSUBSCRIBE,
    ROOTS_LIST_CHANGED,
    ELICITATION_COMPLETE,
    CANCELLED,
    PROGRESS,
    MESSAGE,
    SUBSCRIPTIONS_ACKNOWLEDGED,
    TOOLS_LIST_CHANGED,
    PROMPTS_LIST_CHANGED,
    RESOURCES_LIST_CHANGED,
    RESOURCES_UPDATED,
];

/// The requests of tasks, in all forms of tasks.
pub const TASKS: &[&str] =
    &[TASKS_GET, TASKS_UPDATE, TASKS_CANCEL, TASKS_RESULT, TASKS_LIST, TASKS_INPUT_RESPONSE];

/// Returns `true` if the response to a request of this method may be an `InputRequiredResult`.
///
/// > Servers **MUST NOT** send `InputRequiredResult` responses on any other client requests.
pub fn may_ask(method: &str) -> bool {
    matches!(method, TOOLS_CALL | PROMPTS_GET | RESOURCES_READ)
}
