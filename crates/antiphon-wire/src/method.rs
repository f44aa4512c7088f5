//! The methods of the protocol, by their names on the wire.

/// Asks a server for its versions, capabilities and identity.
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
/// An ask: a form or a URL for the person at the client.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// An ask: a message from the client's model. Deprecated in 2026-07-28.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// An ask: the client's root directories. Deprecated in 2026-07-28.
pub const ROOTS_LIST: &str = "roots/list";
/// The handshake of the revisions up to 2025-11-25.
pub const INITIALIZE: &str = "initialize";
/// The client is ready, after `initialize`. Legacy.
pub const INITIALIZED: &str = "notifications/initialized";
/// Whether the other side is there. Legacy.
pub const PING: &str = "ping";
/// Which log messages a client wants to hear of. Legacy.
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// Wants to hear of a resource. Legacy.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Wants to hear of a resource no more. Legacy.
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// The client's root directories are others. Legacy.
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
/// What a person did behind a URL is finished. Of 2025-11-25.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// A request is no longer wanted.
pub const CANCELLED: &str = "notifications/cancelled";
/// How far a request has come.
pub const PROGRESS: &str = "notifications/progress";
/// A log message that belongs to a request. Deprecated in 2026-07-28.
pub const MESSAGE: &str = "notifications/message";
/// The first message on a subscription: what will come on it.
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// The list of tools is another one.
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
/// The list of prompts is another one.
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
/// The list of resources, or of resource templates, is another one.
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// A resource holds something else.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";

/// Whether a request of this method may be answered with an `InputRequiredResult`.
///
/// > Servers **MUST NOT** send `InputRequiredResult` responses on any other client requests.
pub fn may_ask(method: &str) -> bool {
    matches!(method, TOOLS_CALL | PROMPTS_GET | RESOURCES_READ)
}
