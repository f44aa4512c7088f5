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
/// An ask: a form or a URL for the person at the client.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// An ask: a message from the client's model. Deprecated in 2026-07-28.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// An ask: the client's root directories. Deprecated in 2026-07-28.
pub const ROOTS_LIST: &str = "roots/list";
/// The handshake of the revisions up to 2025-11-25.
pub const INITIALIZE: &str = "initialize";
/// A request is no longer wanted.
pub const CANCELLED: &str = "notifications/cancelled";
/// How far a request has come.
pub const PROGRESS: &str = "notifications/progress";
/// A log message that belongs to a request. Deprecated in 2026-07-28.
pub const MESSAGE: &str = "notifications/message";

/// Whether a request of this method may be answered with an `InputRequiredResult`.
///
/// > Servers **MUST NOT** send `InputRequiredResult` responses on any other client requests.
pub fn may_ask(method: &str) -> bool {
    matches!(method, TOOLS_CALL | PROMPTS_GET | RESOURCES_READ)
}
