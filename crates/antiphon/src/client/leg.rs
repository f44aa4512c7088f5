//! One leg: a request and its response.

use super::{
    Inner,
    call::{Call, CallKind},
    fault::{RequestFault, common_version, supported},
    finished::{Final, Leg},
    pending::Outgoing,
};
use crate::transport::{OutgoingRequest, TransportError};
use antiphon_wire::{
    CallToolParams, ErrorCode, ErrorObject, GetPromptParams, Implementation, Meta, OutcomeFault,
    ProtocolVersion, ReadResourceParams, RequestId, write_request,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::atomic::Ordering, time::Duration};

/// A request, up to its id, version and `_meta`.
pub(super) struct Wanted<'a> {
    pub(super) method: &'static str,
    pub(super) name: Option<&'a str>,
    pub(super) timeout: Duration,
}

/// Writes the message once its id and `_meta` are known.
type Write<'a> = dyn Fn(&RequestId, Meta) -> Result<Vec<u8>, serde_json::Error> + Send + Sync + 'a;

impl Inner {
    /// Sends one leg of a call and reads what it came to.
    pub(super) async fn leg<T: Final>(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
    ) -> Result<Leg<T>, RequestFault> {
        let wanted = Wanted {
            method: call.method(),
            name: Some(call.name()),
            timeout: call.options().leg_timeout.unwrap_or(self.bounds.leg_timeout),
        };
        let result = self.request(&wanted, &|id, meta| write_leg(call, with, id, meta)).await?;
        T::read(call.kind(), &result)
            .map_err(|fault| RequestFault::Result { ask: misplaced_ask(&fault, &result), fault })
    }

    /// Sends a request and returns its result, once more if the server names another version that is spoken here.
    pub(super) async fn request(
        &self,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        // > The client **SHOULD** select a mutually supported version from the `supported` list and retry the request,
        // > or surface an error to the user if no compatible version exists.
        let reply = match self.send(wanted, write).await? {
            Err(error) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                match common_version(supported(&error).iter().map(String::as_str)) {
                    Some(version) => {
                        self.known().version = version;
                        self.send(wanted, write).await?
                    }
                    None => Err(error),
                }
            }
            reply => reply,
        };
        let result = reply.map_err(|error| RequestFault::server(error, self.declared))?;
        if let Some(info) = server_info(&result) {
            self.known().info = Some(info);
        }
        Ok(result)
    }

    async fn send(
        &self,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<Result<Box<RawValue>, ErrorObject>, RequestFault> {
        // > The JSON-RPC `id` **MUST** be different between the initial request and the retry, as they are independent
        // > requests.
        let id = RequestId::from(self.next_id.fetch_add(1, Ordering::Relaxed));
        let version = self.known().version.clone();
        let meta = Meta::for_request(&version, Some(&self.info), &self.capabilities);
        let mut body = write(&id, meta).map_err(RequestFault::Unwritable)?;
        // Arguments are sent as they were written. Between the tokens of JSON a line may break; lines frame messages.
        body.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        let request = OutgoingRequest {
            id,
            method: Cow::Borrowed(wanted.method),
            name: wanted.name.map(str::to_owned),
            version,
            body,
        };
        // Dropping the exchange cancels the request.
        let mut ignore = |_| {};
        let reply = tokio::time::timeout(wanted.timeout, self.transport.exchange(request, &mut ignore)).await;
        let reply: Result<_, TransportError> = reply.map_err(|_| RequestFault::Timeout(wanted.timeout))?;
        reply.map_err(RequestFault::Transport)
    }
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
pub(super) fn pick_version(theirs: &[ProtocolVersion]) -> Result<ProtocolVersion, RequestFault> {
    common_version(theirs.iter().map(ProtocolVersion::as_str)).ok_or_else(|| RequestFault::Version {
        theirs: theirs.iter().map(|version| version.as_str().to_owned()).collect(),
    })
}
