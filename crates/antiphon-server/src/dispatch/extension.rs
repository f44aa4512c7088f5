//! The methods of extensions: the gate, the scopes, the params, and the result or the error of the handler.

use super::tasks::tasks;
use crate::{
    call::{emit::Emitter, in_flight::ConcurrencyPermit},
    dispatch::encode::encode,
    errors::{Error, refusal::Refusal},
    extension::{
        Handler,
        ctx::{ExtensionCtx, ExtensionMessage},
        registry::{Declared, Method},
    },
    identity::Caller,
    offer::offers::Offers,
    request::{RequestData, carrier::HandlerPlace, receive::Request},
    runtime::{CAUSE, Runtime},
    trace::TraceContext,
};
use antiphon_wire::{ErrorObject, Meta, escaped};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::{borrow::Cow, sync::Arc};

/// Answers a request of an extension, or runs the handler of a notification; then the body is empty.
pub(super) async fn extension(
    server: &Arc<Runtime>,
    offers: &Offers,
    method: &Method,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<Vec<u8>, Refusal> {
    match (&method.handler, request.is_notification) {
        (Handler::Tasks, false) => tasks(server, offers, request, caller).await,
        (Handler::Request(run), false) => {
            let run = |ctx| run(ctx, request.text);
            let result = call(server, &method.extension, request, caller, run).await?;
            let result = result.map_err(|error| failed(server, request, error))?;
            match &request.session {
                Some(_) => encode(request, &result),
                None => encode(request, &complete(server, result)),
            }
        }
        (Handler::Notification(run), true) => {
            let run = |ctx| run(ctx, request.text);
            if let Err(error) = call(server, &method.extension, request, caller, run).await? {
                log_failure(request, &error);
            }
            Ok(Vec::new())
        }
        _ => Err(Refusal::Method(request.method.to_string())),
    }
}

/// Checks a message, and runs its handler. The inner error is that of the handler.
async fn call<T>(
    server: &Arc<Runtime>,
    extension: &Declared,
    request: &Request<'_>,
    caller: &Caller<'_>,
    run: impl FnOnce(ExtensionCtx) -> Result<BoxFuture<'static, Result<T, Error>>, String>,
) -> Result<Result<T, Error>, Refusal> {
    // Two readers of the params cannot read two different values.
    request.unique_names()?;
    server.require_scopes(&extension.scopes, caller)?;
    // A handler would take the caller for an anonymous one.
    let principal = server.identified(&request.method, caller)?;
    let data = RequestData::new(Cow::Owned(request.method.to_string()), request, caller);
    // > A server **MUST NOT** rely on capabilities the client has not declared.
    if extension.requires_client && data.extension(extension.id.as_str()).is_none() {
        return Err(Refusal::Extension { id: Cow::Owned(extension.id.to_string()) });
    }
    let permit = ConcurrencyPermit::take(server, HandlerPlace::of(request), caller, principal.as_ref());
    let Some(_permit) = permit else { return Err(Refusal::Busy) };
    let ctx = ExtensionCtx(Arc::new(ExtensionMessage {
        extension: extension.id.clone(),
        server: Arc::clone(server),
        principal,
        bearer: caller.bearer().cloned(),
        client_info: request.meta.client_info.map(ToOwned::to_owned),
        version: request.protocol_version(),
        request: data,
        trace: TraceContext::of(request.params.meta),
        emitter: Emitter::of(request, caller.outbox, false),
        outbox: caller.outbox.cloned(),
    }));
    let answered = run(ctx).map_err(Refusal::params)?;
    tokio::time::timeout(server.limits.handler_timeout, answered).await.map_err(|_elapsed| {
        tracing::error!(method = ?escaped(&request.method), limit = ?server.limits.handler_timeout, "the handler of an extension took too long and was dropped");
        Refusal::Internal
    })
}

/// Returns the refusal for the error of a handler.
fn failed(server: &Runtime, request: &Request<'_>, error: Error) -> Refusal {
    let error = match error.downcast::<ErrorObject>() {
        Ok(error) => return Refusal::Again(Box::new(error)),
        Err(error) => error,
    };
    match error.user_facing_text() {
        Some(text) => Refusal::UserFacing(text.to_owned()),
        None => {
            log_failure(request, &error);
            server.hidden(&error.to_string())
        }
    }
}

fn log_failure(request: &Request<'_>, error: &Error) {
    tracing::error!(method = ?escaped(&request.method), cause = %escaped(error).limit(CAUSE), "the handler of an extension failed");
}

/// Adds the members that every result of 2026-07-28 has.
fn complete(server: &Runtime, mut result: Map<String, Value>) -> Map<String, Value> {
    // > Extensions **MAY** add additional `ResultType` values.
    result.entry("resultType").or_insert_with(|| "complete".into());
    let meta = result.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(members) = meta {
        let mut meta = Meta(std::mem::take(members));
        server.server_info.join(&mut meta);
        *members = meta.0;
    }
    result
}
