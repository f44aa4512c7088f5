//! The client: calls tools, gets prompts and reads resources, and answers the questions of servers during a call.
//!
//! A call is a graph of a few states. The names in parentheses are files:
//!
//! ```text
//!  Call (call) -------------begin--> leg (call/legs) ----complete---------> Finished (call/outcome)
//!                                     ^  ^   |
//!                                     |  |   +--input_required: state only---+
//!                                     |  +---------- a pause (pacing) <------+
//!                                     |      +--input_required: asks--> PendingCall (call/pending)
//!                                     |                                      |
//!                                     |          callbacks (asks), or answer() by hand;
//!                                     |              every answer is checked (asks/answers)
//!                                     |                                      |
//!                                     +---------- resume <------- all answered
//! ```
//!
//! A leg may also make a task of the call (`call/task`), which has a drawing of its own.
//!
//! A leg sends its request through the connection (`session/requests`), which stores the era of the server. The folders use
//! each other in one direction only: `transport`, `asks`, `request`, `session`, `lists`, `call`, `subscribe`, and [`Client`] on
//! top.
//!
//! [`Client::call_tool`], [`Client::get_prompt`] and [`Client::read_resource`] run a call to its end (`call/rounds`): the
//! callbacks of the [`ClientBuilder`] answer. [`Client::begin`] and [`Client::resume`] run a call to its next question. The
//! [`PendingCall`] in between is plain data, which another process can continue days later.
//!
//! Each leg is a new request: the same name and arguments, a new id, the answers of the latest round only, and exactly
//! the latest state, or none if the latest result had none. The client stores nothing of it: calls that run at the same
//! time cannot see each other's.
//!
//! ```
//! use antiphon::client::{Client, ClientError, transport::Transport};
//!
//! async fn provision(transport: impl Transport) -> Result<(), ClientError> {
//!     let client = Client::builder("my-host", "1.0")
//!         .on_elicit_form(async |ask| {
//!             // Show `ask.context.server`, `ask.message` and `ask.schema.fields()` to the person.
//!             Ok(ask.accept(serde_json::json!({"region": "eu"}))?)
//!         })
//!         .connect(transport);
//!     let result = client.call_tool("provision", serde_json::json!({"name": "orders"})).await?;
//!     assert!(!result.failed());
//!     Ok(())
//! }
//! ```
//!
//! Beside the result, callbacks get a request's progress ([`ClientBuilder::on_progress`]) and the server's log messages about
//! it ([`ClientBuilder::on_log`]). Lists are kept for as long as the server allows, so that listing twice is cheap
//! ([`ClientBuilder::cache`] lists the kept results). Calls use the list of tools: the arguments that HTTP repeats
//! in headers, and the schema that results must fit. A client that never lists calls
//! tools all the same: where the server then misses a header, the client lists and tries once more.
//!
//! With the feature `schema`, structured results are compared with the output schemas of their tools; without it they are
//! not. Output schemas are of JSON Schema 2020-12 unless `$schema` names 2019-09 or draft 7, 6 or 4, and of bounded cost. No `$ref`
//! is ever fetched. Results of a tool whose output schema cannot be used are not checked, and one warning says why.
//!
//! # Tasks
//!
//! A server of 2026-07-28 may answer a tool call with a task (the extension `io.modelcontextprotocol/tasks`): the work continues
//! without its request. [`Client::call_tool`] hides this: it gets the task again and again (`call/task/run`), as often as the
//! server suggests, answers its questions with the same callbacks and checks as a round, and returns the result of the task.
//! Each question is asked once. Requests that fail for the moment are sent again, so that a task survives a server that
//! restarts. Status messages arrive at [`ClientBuilder::on_progress`], numbered from 1, with the method `tasks/get`.
//!
//! [`Client::begin`] returns a [`TaskHandle`] instead: plain data, which [`Client::task`] continues in this process or another. A
//! call that ends with an error leaves its task alone, and the error holds the handle ([`ClientError::task`]);
//! [`Call::cancel_on_error`] sends `tasks/cancel` first. [`SubscriptionFilter::task`](antiphon_wire::SubscriptionFilter::task)
//! subscribes to the states of a task. [`ClientBuilder::tasks`] switches tasks off.
//!
//! With [`ClientBuilder::task_notifications`], calls that became tasks share one subscription (`session/task_stream`): the server
//! reports their states, and they are polled once a minute only. If there are no reports, they are polled as usual.
//!
//! Servers speak about tasks in two further forms ([`TaskForm`]). In a session of 2025-11-25 the client asks for the task: it
//! sends `task` with calls of the tools that require one, and with [`Client::begin`] of those that allow one, as the latest list
//! says. If an unlisted tool is refused, the client lists the tools, and calls a tool that requires a task again as one. In the
//! draft before the extension ([`ClientBuilder::draft_tasks`]), each call asks for a task. Methods, callbacks and errors are the
//! same in every form.
//!
//! # Errors
//!
//! There is one error, [`ClientError`]. Its predicates show the caller's next action: after
//! [`is_unauthorized`](ClientError::is_unauthorized) and [`is_forbidden`](ClientError::is_forbidden), call again with another token;
//! after [`is_busy`](ClientError::is_busy), call again later; after [`is_unknown_outcome`](ClientError::is_unknown_outcome), the
//! server may have acted or not.
//!
//! # Legacy servers
//!
//! The same methods and callbacks work with servers of the revisions before 2026-07-28, which keep a session. The client
//! detects the server's era unless [`ClientBuilder::mode`] sets it. On a session a server asks while the call runs. For
//! [`ClientBuilder::on_round`], each question is a round of one ask; its key is the elicitation's id, or else the id of the
//! request. If the transport shows the call of a question (the stream of a POST), the callbacks receive that call as the
//! origin; otherwise the method is `initialize`, and the question belongs to the session. The time in which a person is asked
//! does not count for timeouts. A question that is not supported here is refused with the error of the session's
//! version (`-32601`, `-32602`), and the call continues. A callback that fails ends the call.
//!
//! On a session, [`Client::begin`] also runs the callbacks, because such a call cannot wait unless it is a task. It returns a [`PendingCall`] only
//! for URLs that must be opened before a request is sent again (`-32042`). A pending call of a modern server is not sent to a
//! session ([`RequestFault::PendingOnSession`]).
//!
//! The session ends with [`Client::close`]. If the last clone of the client is dropped instead, the client tries to end the
//! session in the background.
//!
//! # Limits
//!
//! The client does not start a call over, invent an answer, open a URL, or send an answer that breaks the rules of its form.

mod asks;
mod builder;
#[cfg(feature = "layers")]
mod builder_layers;
mod cache;
mod call;
mod client;
mod extension;
mod layer;
mod lists;
mod request;
mod session;
mod subscribe;
mod trace;
pub mod transport;

#[cfg(feature = "oauth")]
pub use antiphon_oauth as oauth;

pub use asks::{
    answers::{AnswerError, AnswerFault},
    callbacks::{AskFault, CallbackError, ElicitComplete},
    consent,
    questions::{
        AskContext, ElicitAsk, FormAsk, RootsAsk, Round, RoundDecision, SampleAsk, ServerIdentity, UrlAsk,
    },
};
pub use builder::ClientBuilder;
pub use call::{
    ArgumentsError, Call, CallKind, CallOptions,
    error_kind::ClientErrorKind,
    errors::ClientError,
    outcome::{CallProgress, Finished},
    pending::PendingCall,
    task::ClientTask,
    task_handle::{TaskForm, TaskHandle},
};
pub use client::Client;
pub use layer::{Reply, ReplyKind, Request, RequestService};
pub use request::{
    deadline::CancelToken,
    events::{EventContext, LogEvent, OnProgress, ProgressEvent},
    fault::RequestFault,
};
pub use session::{Era, Mode};
pub use subscribe::{Subscription, inbox::SubscriptionEvent, listen::ReconnectPolicy};
