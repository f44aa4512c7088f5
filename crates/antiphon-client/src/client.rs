//! The client of one server.

use crate::{
    asks::questions::ServerIdentity,
    cache::Key,
    call::{
        ArgumentsError, Call,
        error_kind::ClientErrorKind,
        errors::ClientError,
        outcome::{CallProgress, Finished},
        pending::PendingCall,
        rounds::Run,
        task::ClientTask,
        task_handle::{TaskForm, TaskHandle},
    },
    lists::{FetchedResult, Source, read, tools::ServerTools},
    request::{
        Core, RequestSpec,
        fault::{RequestFault, pick_version},
    },
    session::{Connection, Era, discover},
    subscribe::Subscription,
};
use antiphon_wire::{
    CallToolResult, CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference, DiscoverResult, GetPromptResult, Implementation, LegacyTask, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, Prompt, ProtocolVersion,
    ReadResourceResult, RequestId, Resource, ResourceTemplate, ServerCapabilities, SubscriptionFilter, Task,
    Tool, escaped, method, write_notification, write_request,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{borrow::Cow, fmt, sync::Arc};

/// A client of one server. Clones are the same client.
#[derive(Clone)]
pub struct Client {
    tools: Arc<ServerTools>,
}

/// Calls, the server, and the connection.
impl Client {
    pub(crate) fn new(tools: ServerTools) -> Self {
        Self { tools: Arc::new(tools) }
    }

    /// Calls a tool. The callbacks answer its asks. The arguments are an object; `()` means none.
    ///
    /// # Errors
    /// [`ClientError`] names the party at fault, and holds the pending call if the server had asked something. A tool that failed
    /// is not an error: see [`CallToolResult::failed`].
    pub async fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<CallToolResult, ClientError> {
        let call = self.checked(method::TOOLS_CALL, Call::tool(name, arguments))?;
        Run::first(&self.tools, call).finish().await
    }

    /// Gets a prompt. The callbacks answer its asks. The arguments are an object of strings; `()` means
    /// none.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<GetPromptResult, ClientError> {
        let call = self.checked(method::PROMPTS_GET, Call::prompt(name, arguments))?;
        Run::first(&self.tools, call).finish().await
    }

    /// Reads a resource. The callbacks answer its asks.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn read_resource(&self, uri: impl Into<String>) -> Result<ReadResourceResult, ClientError> {
        Run::first(&self.tools, Call::resource(uri)).finish().await
    }

    /// Makes a call with a timeout, deadline or cancellation of its own. The callbacks answer its asks.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn call(&self, call: Call) -> Result<Finished, ClientError> {
        Run::first(&self.tools, call).finish().await
    }

    /// Makes a call up to its first question, if it has one. No callback runs.
    ///
    /// On a session of a legacy server, questions arrive while the call runs: the callbacks answer them, and the call continues
    /// to its end. Only URLs that must be opened first (`-32042`) make the call a pending call there. In a session of
    /// 2025-11-25 a tool may become a task: one whose support for tasks is `required`, or `optional` if the list of tools was
    /// read before.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn begin(&self, call: Call) -> Result<CallProgress, ClientError> {
        Run::first(&self.tools, call).step().await
    }

    /// Sends the answers of a pending call, up to its next question. No callback runs, and rounds are not counted. An
    /// error gives the pending call back; keep a clone if this future may be dropped.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool); [`ClientErrorKind::MissingAnswers`] lists the keys that have no answer, and
    /// nothing is sent then.
    pub async fn resume(&self, pending: PendingCall) -> Result<CallProgress, ClientError> {
        Run::resumed(&self.tools, pending).step().await
    }

    /// Continues a pending call to its end: the callbacks answer the asks without an answer. The count of rounds starts again.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn drive(&self, pending: PendingCall) -> Result<Finished, ClientError> {
        Run::resumed(&self.tools, pending).finish().await
    }

    /// A task of the server, by its handle: gets it, answers its questions, cancels it, or follows it to its end. Sends nothing.
    pub fn task(&self, handle: TaskHandle) -> ClientTask {
        ClientTask::new(Arc::clone(&self.tools), handle)
    }

    /// A task of the server, by its id alone. Sends nothing. A [`TaskHandle`] also has the keys that were answered; without it, a
    /// question whose answer was sent may be asked once more.
    pub fn attach(&self, task_id: impl Into<String>) -> ClientTask {
        let form = if self.core().draft_tasks { TaskForm::Draft } else { TaskForm::Extension };
        self.task(TaskHandle::of_id(self.server(), task_id.into(), form))
    }

    /// The server: its target and, once a result named it, its name.
    pub fn server(&self) -> ServerIdentity {
        self.core().identity()
    }

    /// The server's name and version, from `discover`, `initialize`, or any other result that holds them.
    pub fn server_info(&self) -> Option<Implementation> {
        self.core().known().info.clone()
    }

    /// The server's capabilities, from `discover` or `initialize`.
    pub fn capabilities(&self) -> Option<ServerCapabilities> {
        self.core().known().capabilities.clone()
    }

    /// The protocol version of requests; on a session, the version that was agreed upon.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.core().known().version.clone()
    }

    /// Returns the types of the layers around each request, from the outermost on: those of `ClientBuilder::layer`.
    pub fn layers(&self) -> &[&'static str] {
        self.connection().layers.as_ref().map_or(&[], |layers| &layers.names)
    }

    /// The era of the server; none until its first answer.
    pub fn era(&self) -> Option<Era> {
        self.connection().era()
    }

    /// Notifies the server that the root directories changed, where a session is open: the server may ask for them again.
    /// Does nothing without a session, as roots are asked for when they are needed; nor without
    /// [`on_roots`](crate::ClientBuilder::on_roots), as there are none then.
    pub async fn roots_changed(&self) {
        // > Both parties **MUST**: Only use capabilities that were successfully negotiated
        if !self.core().handlers.callbacks.declared().roots {
            return;
        }
        let Some(session) = self.connection().current_session() else { return };
        let message = write_notification(method::ROOTS_LIST_CHANGED, &serde_json::json!({}));
        if let Ok(message) = message
            && let Err(fault) = session.send(message).await
        {
            tracing::debug!(fault = %escaped(&fault), "the server could not be notified of changed roots");
        }
    }

    /// Listens to changes of lists and resources. Nothing is sent before [`Subscription::next`] is called first.
    ///
    /// On a session of a legacy server, it receives the notifications of the session, and subscribes to the resources. Changes
    /// that the server does not offer are missing in the acknowledgement.
    pub fn listen(&self, filter: SubscriptionFilter) -> Subscription {
        Subscription::new(Arc::clone(&self.tools), filter)
    }

    /// Ends the connection, and the session if there is one. Requests that are under way fail.
    ///
    /// If the client and all its clones are dropped instead, the session over HTTP is ended in the background, if a
    /// tokio runtime runs, within two seconds; no code waits for this. A program that exits at once may leave the
    /// session open on the server until the server's idle time is over: close the client before.
    pub async fn close(&self) {
        if let Some(session) = self.connection().current_session() {
            session.end().await;
        }
        self.connection().transport.close().await;
    }
}

/// Lists, completion and the cache.
impl Client {
    /// Requests the server's versions, capabilities and identity, and stores them. No call needs this method. A result that is
    /// still fresh is returned again. For a legacy server, the result comes from `initialize`.
    ///
    /// # Errors
    /// [`ClientError`]; also if there is no common version.
    pub async fn discover(&self) -> Result<DiscoverResult, ClientError> {
        let error = |fault: RequestFault| self.error(method::DISCOVER, fault);
        let fetched = self.tools.lists.fetch(Key::Discover, Source::Either, method::DISCOVER, &discover);
        let FetchedResult { result, fetched: is_new, .. }: FetchedResult<DiscoverResult> =
            fetched.await.map_err(error)?;
        if is_new {
            let is_modern = self.connection().current_session().is_none();
            let version =
                is_modern.then(|| pick_version(&result.supported_versions)).transpose().map_err(error)?;
            let mut known = self.core().known();
            if let Some(version) = version {
                known.version = version;
            }
            known.capabilities = Some(result.capabilities.clone());
        }
        Ok(result)
    }

    /// Lists every tool, page after page. Pages that are still fresh are not requested again.
    ///
    /// Schemas are the text that the server sent; no `$ref` in them is followed. Calls use the latest list: the arguments that
    /// HTTP repeats in headers, and the output schemas of results. On HTTP, a tool that requires invalid headers is left out,
    /// with a warning in the log.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, ClientError> {
        self.tools.list(Source::Either).await.map_err(|kind| self.error(method::TOOLS_LIST, kind))
    }

    /// Lists every prompt, page after page. Pages that are still fresh are not requested again.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        self.list(method::PROMPTS_LIST, |page: ListPromptsResult| (page.prompts, page.next_cursor)).await
    }

    /// Lists every resource, page after page. Pages that are still fresh are not requested again.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, ClientError> {
        self.list(method::RESOURCES_LIST, |page: ListResourcesResult| (page.resources, page.next_cursor))
            .await
    }

    /// Lists every template of resources, page after page. Pages that are still fresh are not requested again.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        self.list(method::RESOURCE_TEMPLATES_LIST, |page: ListResourceTemplatesResult| {
            (page.resource_templates, page.next_cursor)
        })
        .await
    }

    /// Lists every task of this client, page after page: on a session of 2025-11-25 whose server lists tasks, and on servers
    /// that speak the draft. The extension has no list.
    ///
    /// # Errors
    /// [`ClientError`]; [`is_not_found`](ClientError::is_not_found) if the server lists no tasks.
    pub async fn list_tasks(&self) -> Result<Vec<Task>, ClientError> {
        let tasks =
            self.list(method::TASKS_LIST, |page: ListTasksResult| (page.tasks, page.next_cursor)).await?;
        Ok(tasks.into_iter().map(|LegacyTask { task, .. }| task).collect())
    }

    /// Suggestions for an argument of a prompt, or a variable of a resource template, as far as it is typed.
    ///
    /// `context` holds the arguments that have a value already. Suggestions are not cached: a program that requests
    /// them at every key should wait until the typing pauses.
    ///
    /// > Clients **SHOULD**: Debounce rapid completion requests
    ///
    /// # Errors
    /// [`ClientError`]; a server that completes nothing refuses the method.
    pub async fn complete(
        &self,
        reference: CompletionReference,
        argument: impl Into<String>,
        value: impl Into<String>,
        context: Option<CompletionContext>,
    ) -> Result<Completion, ClientError> {
        let argument = CompletionArgument::new(argument, value);
        let spec = RequestSpec::single(method::COMPLETION_COMPLETE, self.core().bounds.leg_timeout);
        let write = |id: &RequestId, meta| {
            let mut params = CompleteParams::new(reference.clone(), argument.clone(), meta);
            params.context = context.clone();
            write_request(id, method::COMPLETION_COMPLETE, &params)
        };
        let result = self.connection().request(&spec, &write).await;
        result
            .and_then(|result| read::<CompleteResult>(&result))
            .map(|result| result.completion)
            .map_err(|fault| self.error(method::COMPLETION_COMPLETE, fault))
    }

    /// Clears the cached lists, discovery and resources, even if the server declared them fresh: the next request of
    /// each kind is sent. For a change of the user, see [`cache(false)`](crate::ClientBuilder::cache).
    pub fn clear_cache(&self) {
        self.core().cache.clear();
    }

    async fn list<P: DeserializeOwned, T: DeserializeOwned>(
        &self,
        method: &'static str,
        open: fn(P) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, ClientError> {
        let pages = self.tools.lists.pages(method, Source::Either, open).await;
        pages.map(|(items, _)| items).map_err(|fault| self.error(method, fault))
    }
}

impl Client {
    pub(crate) fn connection(&self) -> &Connection {
        &self.tools.lists.connection
    }

    pub(crate) fn core(&self) -> &Core {
        &self.connection().core
    }

    fn checked(&self, method: &'static str, call: Result<Call, ArgumentsError>) -> Result<Call, ClientError> {
        call.map_err(|error| self.error(method, ClientErrorKind::Arguments(error)))
    }

    pub(crate) fn error(
        &self,
        method: impl Into<Cow<'static, str>>,
        kind: impl Into<ClientErrorKind>,
    ) -> ClientError {
        ClientError::of_request(self.server(), method, kind)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.server()).finish_non_exhaustive()
    }
}
