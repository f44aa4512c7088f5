//! The context of an extension's handler: the caller, the client and its settings, the request.

use crate::{
    call::emit::Emitter,
    errors::Error,
    identity::Bearer,
    outbox::{MessageKind, Outbox},
    request::{RequestData, RequestInfo},
    runtime::Runtime,
    trace::TraceContext,
};
use antiphon_seal::Principal;
use antiphon_wire::{
    Implementation, ProtocolVersion,
    extension::{ExtensionId, check_method},
    write_notification,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{fmt, sync::Arc};

/// The context of a request or notification of an [`Extension`](crate::Extension). Clones are the same context. It cannot ask: only tools,
/// prompts and resources do.
#[derive(Clone)]
pub struct ExtensionCtx(pub(crate) Arc<ExtensionMessage>);

/// The data of one message.
pub(crate) struct ExtensionMessage {
    pub(crate) extension: ExtensionId,
    pub(crate) server: Arc<Runtime>,
    pub(crate) principal: Option<Principal>,
    pub(crate) bearer: Option<Bearer>,
    pub(crate) client_info: Option<Box<RawValue>>,
    pub(crate) version: ProtocolVersion,
    pub(crate) request: RequestData,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) emitter: Option<Emitter>,
    /// `None` if the transport carries replies only.
    pub(crate) outbox: Option<Outbox>,
}

impl ExtensionCtx {
    /// Returns the id of the extension.
    pub fn extension(&self) -> &str {
        self.0.extension.as_str()
    }

    /// Reads the settings that the client declared for this extension; `None` if it did not declare the extension. Untrusted.
    ///
    /// # Errors
    /// If the settings do not fit the type. The text is for the caller.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        self.extension_settings(self.extension())
    }

    /// Reads the settings that the client declared for any extension: [`Ctx::extension_settings`](crate::Ctx::extension_settings).
    ///
    /// # Errors
    /// If the settings do not fit the type. The text is for the caller.
    pub fn extension_settings<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, Error> {
        self.0.request.extension_settings(id)
    }

    /// Returns the authenticated caller; `None` without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.principal.as_ref()
    }

    /// Returns the verified access token; `None` without authentication, as on stdio.
    pub fn bearer(&self) -> Option<&Bearer> {
        self.0.bearer.as_ref()
    }

    /// Returns the client's name and version, if the message or its session has them. Both are self-reported: use them for display and
    /// logs, never for decisions.
    pub fn client_info(&self) -> Option<Implementation> {
        serde_json::from_str(self.0.client_info.as_ref()?.get()).ok()
    }

    /// Returns the protocol version that the client uses.
    pub fn protocol_version(&self) -> &ProtocolVersion {
        &self.0.version
    }

    /// Returns the request: its method, headers, peer and `_meta`, and the values that layers have added.
    pub fn request(&self) -> RequestInfo<'_> {
        RequestInfo { data: &self.0.request, trace: self.0.trace.as_ref() }
    }

    /// Reports progress, as [`Ctx::report_progress`](crate::Ctx::report_progress) does. A notification of the client has no progress.
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(emitter) = &self.0.emitter {
            emitter.progress(progress, total, message);
        }
    }
}

impl ExtensionCtx {
    /// Sends a notification of the extension to the client, before the response to this request. A client that reads slowly may not
    /// receive it, and nothing is sent where the client reads replies only, nor while a notification of the client is handled.
    ///
    /// > The server **MAY** send JSON-RPC _notifications_ [..] before the final response. These notifications **MUST** relate to the
    /// > originating client request.
    ///
    /// # Errors
    /// If the method is none of an extension, or the params cannot be written as JSON.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), Error> {
        check_method(method)?;
        let message = write_notification(method, params)?;
        if let Some(outbox) = &self.0.outbox {
            outbox.push(MessageKind::Log, message);
        }
        Ok(())
    }
}

impl fmt::Debug for ExtensionCtx {
    /// Omits headers, `_meta` and settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionCtx")
            .field("extension", &self.0.extension)
            .field("method", &self.request().method())
            .finish_non_exhaustive()
    }
}
