//! One leg: a request of a call, and its result.

use crate::{
    cache::Key,
    call::{
        definition::{Call, CallKind},
        outcome::{Final, Leg},
        pending::Outgoing,
        url_required::round_of_urls,
    },
    lists::tools::ServerTools,
    request::{
        fault::RequestFault,
        spec::{BodyWriter, RequestSpec},
    },
};
use antiphon_wire::{ErrorCode, InputResponses, Meta, OutcomeFault, RequestId, write_request};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The place of a leg in its call.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) round: u32,
    pub(crate) leg: u32,
}

/// Sends the legs of calls.
pub(crate) struct Legs<'a> {
    pub(crate) tools: &'a ServerTools,
}

impl Legs<'_> {
    /// Sends one leg of a call and reads its outcome.
    pub(crate) async fn leg<T: Final>(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
        at: Position,
    ) -> Result<Leg<T>, RequestFault> {
        let options = call.options();
        let mut spec = RequestSpec {
            method: call.method(),
            name: Some(call.name()),
            timeout: options.leg_timeout.unwrap_or(self.tools.lists.connection.core.bounds.leg_timeout),
            headers: Vec::new(),
            round: at.round,
            leg: at.leg,
            on_progress: options.on_progress.as_ref(),
            log_level: options.log_level,
            arguments: call.shared_arguments(),
            carries: with.answers.is_some() || with.state.is_some(),
            quiet: false,
        };
        let write = |id: &RequestId, meta| write_leg(call, with, id, meta);
        let leg = match call.kind() {
            CallKind::Tool => self.tool_leg(call, &mut spec, &write).await,
            CallKind::Prompt => self
                .tools
                .lists
                .connection
                .request(&spec, &write)
                .await
                .and_then(|result| read_leg(call.kind(), &result)),
            CallKind::Resource => self.resource_leg(call, with, &spec, &write).await,
        };
        round_of_urls(&self.tools.lists.connection, leg.and_then(|leg| self.declared_task(call, leg)))
    }

    /// Refuses a task that the client did not declare to support with this request.
    ///
    /// > A client that receives `CreateTaskResult` in response to an unsupported request type **MUST** interpret this as an
    /// > invalid response to the request.
    fn declared_task<T>(&self, call: &Call, leg: Leg<T>) -> Result<Leg<T>, RequestFault> {
        let Leg::Task(created) = leg else { return Ok(leg) };
        let connection = &self.tools.lists.connection;
        if call.kind() == CallKind::Tool && connection.core.tasks && connection.current_session().is_none() {
            return Ok(Leg::Task(created));
        }
        Err(task_fault(call.kind(), Some(created.task.task_id)))
    }

    /// Sends a leg of `tools/call`, with the headers that the tool requires. The result must fit its output schema.
    async fn tool_leg<T: Final>(
        &self,
        call: &Call,
        spec: &mut RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Leg<T>, RequestFault> {
        let mut tool = self.tools.known_tool(call.name());
        spec.headers = self.tools.prepare(call.name(), call.arguments(), tool.as_deref())?;
        let mut reply = self.tools.lists.connection.request(spec, write).await;
        // > If the server rejects a request with a `HeaderMismatch` error because required `Mcp-Param-*` headers are
        // > missing or do not match the body, the client **SHOULD** call `tools/list` to check for changes to the
        // > tool's `inputSchema`, then retry the original request with the appropriate headers.
        // The server refused the request before it acted on it, so answers and state may be sent again.
        if let Err(RequestFault::Server(error)) = &reply
            && error.code == ErrorCode::HEADER_MISMATCH
            && self.tools.mirrors_parameters()
            && let Some(now) = self.tools.relisted_tool(call.name()).await
        {
            spec.headers = self.tools.prepare(call.name(), call.arguments(), Some(&now))?;
            reply = self.tools.lists.connection.request(spec, write).await;
            tool = Some(now);
        }
        let leg: Leg<T> = read_leg(call.kind(), &reply?)?;
        if let Leg::Complete(result) = &leg
            && let Some(result) = result.of_tool()
        {
            self.tools.check_output(call.name(), tool.as_deref(), result).await?;
        }
        Ok(leg)
    }

    /// Sends a leg of `resources/read`. Nothing is sent if the cache holds its result.
    async fn resource_leg<T: Final>(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Leg<T>, RequestFault> {
        // > requests carrying `inputResponses` or `requestState` **MUST NOT** be cached
        if with.answers.is_some() || with.state.is_some() {
            return read_leg(call.kind(), &self.tools.lists.connection.request(spec, write).await?);
        }
        let cache = self.tools.lists.cache();
        let key = Key::Resource(call.name().to_owned());
        if let Some(kept) = cache.get(&key).filter(|_| !call.options().fresh)
            && let Ok(leg) = read_leg(call.kind(), &kept)
        {
            return Ok(leg);
        }
        let asked = cache.generation(&key);
        let result = self.tools.lists.connection.request(spec, write).await?;
        let leg = read_leg(call.kind(), &result)?;
        // > Interim results with `resultType: "input_required"` [...] are not cacheable
        if let Leg::Complete(_) = &leg {
            cache.put(key, asked, &result);
        }
        Ok(leg)
    }
}

fn read_leg<T: Final>(called: CallKind, result: &RawValue) -> Result<Leg<T>, RequestFault> {
    T::read(called, result).map_err(|fault| match fault {
        OutcomeFault::Task { id } => task_fault(called, id),
        fault => RequestFault::Result { ask: misplaced_ask(&fault, result), fault },
    })
}

/// The fault of a task that is no result. Only tool calls can become tasks.
fn task_fault(called: CallKind, id: Option<String>) -> RequestFault {
    match called {
        CallKind::Tool => RequestFault::Task { id },
        _ => RequestFault::Result { fault: OutcomeFault::Task { id }, ask: None },
    }
}

/// The params of a leg. All three methods have the same, but for the name of the name.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LegParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a InputResponses>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    meta: Meta,
}

/// > If an `InputRequiredResult` contains the `requestState` field, the client **MUST** echo back the exact value of
/// > that field when retrying the original request.
fn write_leg(
    call: &Call,
    with: &Outgoing<'_>,
    id: &RequestId,
    meta: Meta,
) -> Result<Vec<u8>, serde_json::Error> {
    let is_resource = call.kind() == CallKind::Resource;
    let params = LegParams {
        name: (!is_resource).then(|| call.name()),
        uri: is_resource.then(|| call.name()),
        arguments: call.arguments(),
        input_responses: with.answers.as_ref(),
        request_state: with.state,
        meta,
    };
    write_request(id, call.method(), &params)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithAsks {
    input_requests: serde_json::Map<String, serde_json::Value>,
}

/// Key and method of the first ask of a result that should not have any.
fn misplaced_ask(fault: &OutcomeFault, result: &RawValue) -> Option<(String, String)> {
    if !matches!(fault, OutcomeFault::AsksWithoutResultType) {
        return None;
    }
    let asks = serde_json::from_str::<WithAsks>(result.get()).ok()?.input_requests;
    let (key, ask) = asks.into_iter().next()?;
    let method = ask.get("method").and_then(|method| method.as_str()).unwrap_or("no method").to_owned();
    Some((key, method))
}
