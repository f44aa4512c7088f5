//! One leg: a request and its response.

use crate::{
    Inner,
    cache::Key,
    call::{Call, CallKind},
    era::Footing,
    event::OnProgress,
    fault::{RequestFault, common_version, supported},
    finished::{Final, Leg},
    hearing::Hearing,
    patience::Patience,
    pending::Outgoing,
    transport::{OutgoingRequest, ServerReply, TransportError},
};
use antiphon_wire::{
    CallToolParams, ErrorCode, GetPromptParams, Implementation, LogLevel, Meta, OutcomeFault,
    ProtocolVersion, ReadResourceParams, RequestId, write_request,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::atomic::Ordering, time::Duration};

/// A request, up to its id, version and `_meta`.
pub(crate) struct Wanted<'a> {
    pub(crate) method: &'static str,
    pub(crate) name: Option<&'a str>,
    pub(crate) timeout: Duration,
    /// Headers beyond those that every request has, for transports that have any.
    pub(crate) headers: Vec<(String, String)>,
    /// How many rounds came before.
    pub(crate) round: u32,
    /// Which request of its call it is.
    pub(crate) leg: u32,
    /// Who hears of its progress, instead of the client's callback.
    pub(crate) on_progress: Option<&'a OnProgress>,
    /// The level of log messages, instead of the client's.
    pub(crate) log_level: Option<LogLevel>,
    /// The arguments of the call, for whoever is asked on its way.
    pub(crate) arguments: Option<&'a RawValue>,
    /// Whether it carries answers or state.
    pub(crate) carries: bool,
}

impl Wanted<'_> {
    /// The request, without headers.
    pub(crate) fn request(
        &self,
        id: RequestId,
        version: ProtocolVersion,
        mut body: Vec<u8>,
    ) -> OutgoingRequest {
        // Arguments are sent as they were written. Between the tokens of JSON a line may break; lines frame messages.
        body.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        OutgoingRequest {
            id,
            method: Cow::Borrowed(self.method),
            name: self.name.map(str::to_owned),
            version,
            headers: Vec::new(),
            body,
        }
    }

    /// A request that belongs to no call.
    pub(crate) fn single(method: &'static str, timeout: Duration) -> Self {
        Self {
            method,
            name: None,
            timeout,
            headers: Vec::new(),
            round: 0,
            leg: 1,
            on_progress: None,
            log_level: None,
            arguments: None,
            carries: false,
        }
    }
}

/// Where in its call a leg stands.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) round: u32,
    pub(crate) leg: u32,
}

/// Writes the message once its id and `_meta` are known.
pub(crate) type Write<'a> = dyn Fn(&RequestId, Meta) -> Result<Vec<u8>, serde_json::Error> + Send + Sync + 'a;

impl Inner {
    /// Sends one leg of a call and reads what it came to.
    pub(crate) async fn leg<T: Final>(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
        at: Position,
    ) -> Result<Leg<T>, RequestFault> {
        let options = call.options();
        let mut wanted = Wanted {
            method: call.method(),
            name: Some(call.name()),
            timeout: options.leg_timeout.unwrap_or(self.bounds.leg_timeout),
            headers: Vec::new(),
            round: at.round,
            leg: at.leg,
            on_progress: options.on_progress.as_ref(),
            log_level: options.log_level,
            arguments: call.arguments(),
            carries: with.answers.is_some() || with.state.is_some(),
        };
        let write = |id: &RequestId, meta| write_leg(call, with, id, meta);
        self.urls_first(match call.kind() {
            CallKind::Tool => self.tool_leg(call, &mut wanted, &write).await,
            CallKind::Prompt => {
                self.request(&wanted, &write).await.and_then(|result| read_leg(call.kind(), &result))
            }
            CallKind::Resource => self.resource_leg(call, with, &wanted, &write).await,
        })
    }

    /// A leg of `tools/call`: with the headers that the tool wants, and a result that fits its output schema.
    async fn tool_leg<T: Final>(
        &self,
        call: &Call,
        wanted: &mut Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<Leg<T>, RequestFault> {
        let mut tool = self.known_tool(call.name());
        wanted.headers = self.prepare(call, tool.as_deref())?;
        let mut reply = self.request(wanted, write).await;
        // > If the server rejects a request with a `HeaderMismatch` error because required `Mcp-Param-*` headers are
        // > missing or do not match the body, the client **SHOULD** call `tools/list` to check for changes to the
        // > tool's `inputSchema`, then retry the original request with the appropriate headers.
        // It was refused before anything acted on it, so answers and state may be sent again.
        if let Err(RequestFault::Server(error)) = &reply
            && error.code == ErrorCode::HEADER_MISMATCH
            && self.transport.mirrors_parameters()
            && let Some(now) = self.relisted_tool(call.name()).await
        {
            wanted.headers = self.prepare(call, Some(&now))?;
            reply = self.request(wanted, write).await;
            tool = Some(now);
        }
        let leg: Leg<T> = read_leg(call.kind(), &reply?)?;
        if let Leg::Complete(result) = &leg
            && let Some(result) = result.of_tool()
        {
            self.check_output(call, tool.as_deref(), result).await?;
        }
        Ok(leg)
    }

    /// A leg of `resources/read`, which may not be needed.
    async fn resource_leg<T: Final>(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<Leg<T>, RequestFault> {
        // > requests carrying `inputResponses` or `requestState` **MUST NOT** be cached
        if with.answers.is_some() || with.state.is_some() {
            return read_leg(call.kind(), &self.request(wanted, write).await?);
        }
        let key = Key::Resource(call.name().to_owned());
        if let Some(kept) = self.cache.get(&key).filter(|_| !call.options().fresh)
            && let Ok(leg) = read_leg(call.kind(), &kept)
        {
            return Ok(leg);
        }
        let asked = self.cache.generation(&key);
        let result = self.request(wanted, write).await?;
        let leg = read_leg(call.kind(), &result)?;
        // > Interim results with `resultType: "input_required"` [...] are not cacheable
        if let Leg::Complete(_) = &leg {
            self.cache.put(key, asked, &result);
        }
        Ok(leg)
    }

    /// Sends a request and returns its result, once more if the server names another version that is spoken here.
    pub(crate) async fn request(
        &self,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        // > The client **SHOULD** select a mutually supported version from the `supported` list and retry the request,
        // > or surface an error to the user if no compatible version exists.
        let reply = match self.send(wanted, write).await? {
            Err(error) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                let theirs = supported(&error);
                match common_version(theirs.iter().map(String::as_str)).filter(|_| self.follows()) {
                    Some(version) => {
                        self.change_version(version);
                        self.send(wanted, write).await?
                    }
                    None if Box::pin(self.follow_to_session(&theirs)).await? => {
                        self.send(wanted, write).await?
                    }
                    None => Err(error),
                }
            }
            reply => reply,
        };
        let result = reply.map_err(|error| RequestFault::server(error, self.desk.declared))?;
        if let Some(info) = server_info(&result) {
            self.known().info = Some(info);
        }
        Ok(result)
    }

    /// Goes on with another version. What came under the old one is not used again.
    pub(crate) fn change_version(&self, version: ProtocolVersion) {
        let mut known = self.known();
        if known.version != version {
            known.version = version;
            self.cache.drop_entries();
        }
    }

    async fn send(&self, wanted: &Wanted<'_>, write: &Write<'_>) -> Result<ServerReply, RequestFault> {
        let is_modern = matches!(self.known().footing, Footing::Modern);
        if is_modern {
            self.send_modern(wanted, write).await
        } else {
            Box::pin(self.send_elsewhere(wanted, write)).await
        }
    }

    /// Sends a request that says all there is to know with it.
    pub(crate) async fn send_modern(
        &self,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<ServerReply, RequestFault> {
        // > The JSON-RPC `id` **MUST** be different between the initial request and the retry, as they are independent
        // > requests.
        let id = RequestId::from(self.next_id.fetch_add(1, Ordering::Relaxed));
        let version = self.known().version.clone();
        let mut meta = Meta::for_request(&version, Some(&self.info), &self.capabilities);
        let patience = Patience::new(wanted.timeout, self.bounds.progress_stretches);
        let mut hearing = Hearing::new(self, wanted, &patience);
        hearing.ask(&id, &mut meta);
        let body = write(&id, meta).map_err(RequestFault::Unwritable)?;
        let request =
            OutgoingRequest { headers: wanted.headers.clone(), ..wanted.request(id, version, body) };
        let mut hear = |notification| hearing.take(notification);
        // Dropping the exchange cancels the request.
        let reply = patience.within(self.transport.exchange(request, &mut hear)).await;
        let reply: Result<_, TransportError> = reply.map_err(RequestFault::Timeout)?;
        reply.map_err(RequestFault::Transport)
    }
}

fn read_leg<T: Final>(called: CallKind, result: &RawValue) -> Result<Leg<T>, RequestFault> {
    T::read(called, result)
        .map_err(|fault| RequestFault::Result { ask: misplaced_ask(&fault, result), fault })
}

/// > If an `InputRequiredResult` contains the `requestState` field, the client **MUST** echo back the exact value of
/// > that field when retrying the original request.
fn write_leg(
    call: &Call,
    with: &Outgoing<'_>,
    id: &RequestId,
    meta: Meta,
) -> Result<Vec<u8>, serde_json::Error> {
    let arguments = call.arguments().map(ToOwned::to_owned);
    let (answers, state) = (with.answers.clone(), with.state.map(str::to_owned));
    match call.kind() {
        CallKind::Tool => {
            let mut params = CallToolParams::new(call.name(), arguments, meta);
            (params.input_responses, params.request_state) = (answers, state);
            write_request(id, call.method(), &params)
        }
        CallKind::Prompt => {
            let mut params = GetPromptParams::new(call.name(), arguments, meta);
            (params.input_responses, params.request_state) = (answers, state);
            write_request(id, call.method(), &params)
        }
        CallKind::Resource => {
            let mut params = ReadResourceParams::new(call.name(), meta);
            (params.input_responses, params.request_state) = (answers, state);
            write_request(id, call.method(), &params)
        }
    }
}

#[derive(Deserialize)]
struct WithMeta<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
}

/// The identity that a server tells with any result.
fn server_info(result: &RawValue) -> Option<Implementation> {
    let meta = serde_json::from_str::<WithMeta<'_>>(result.get()).ok()?.meta?;
    serde_json::from_str::<Meta>(meta.get()).ok()?.server_info()
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

/// The version to go on with, of those a server lists.
pub(crate) fn pick_version(theirs: &[ProtocolVersion]) -> Result<ProtocolVersion, RequestFault> {
    common_version(theirs.iter().map(ProtocolVersion::as_str)).ok_or_else(|| RequestFault::Version {
        theirs: theirs.iter().map(|version| version.as_str().to_owned()).collect(),
    })
}
