//! The parts of a request that its sender sets.

use crate::{asks::questions::Origin, request::events::OnProgress, transport::OutgoingRequest};
use antiphon_wire::{LogLevel, Meta, ProtocolVersion, RequestId};
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};

/// A request without its id, version and `_meta`.
pub(crate) struct RequestSpec<'a> {
    pub(crate) method: &'static str,
    pub(crate) name: Option<&'a str>,
    pub(crate) timeout: Duration,
    /// Headers beyond those that every request has, for transports that have any.
    pub(crate) headers: Vec<(String, String)>,
    /// The number of earlier rounds.
    pub(crate) round: u32,
    /// The number of the request in its call, from 1.
    pub(crate) leg: u32,
    /// The callback for its progress, instead of the client's.
    pub(crate) on_progress: Option<&'a OnProgress>,
    /// The level of log messages, instead of the client's.
    pub(crate) log_level: Option<LogLevel>,
    /// The arguments of the call, for the callbacks that are asked on its way.
    pub(crate) arguments: Option<&'a Arc<RawValue>>,
    /// The call that the asks on its way belong to, if it is not this request.
    pub(crate) origin: Option<&'a Origin>,
    /// `true` if the request speaks of tasks as in the draft before the extension: it does not declare the extension.
    pub(crate) draft: bool,
    /// `true` if the request carries answers or state.
    pub(crate) carries: bool,
    /// `true` if the request asks for neither progress nor log messages.
    pub(crate) quiet: bool,
}

impl RequestSpec<'_> {
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
            name: self.name.map(str::to_owned),
            ..OutgoingRequest::new(id, self.method, version, body)
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
            origin: None,
            draft: false,
            carries: false,
            quiet: false,
        }
    }
}

/// Writes the message of a request once its id and `_meta` are known.
pub(crate) type BodyWriter<'a> =
    dyn Fn(&RequestId, Meta) -> Result<Vec<u8>, serde_json::Error> + Send + Sync + 'a;
