//! The offers that the caller of a request sees.

use crate::{
    errors::refusal::Refusal,
    identity::{Caller, caller_info::CallerInfo},
    offer::list::ListItem,
    request::{carrier, param_headers::check_params, receive::Request},
    runtime::Runtime,
};
use antiphon_wire::header::params::ParamHeaders;
use serde_json::value::RawValue;

/// Returns the caller for rules of visibility.
///
/// # Errors
/// If the binder fails; the cause is in the log.
pub(super) fn caller_info(
    server: &Runtime,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<CallerInfo, Refusal> {
    let principal = server.identified(&request.method, caller)?;
    Ok(CallerInfo::new(principal, caller, &request.version, request.meta.client_info))
}

/// Returns whether the caller of this request sees the item. Nobody who cannot be identified sees an item that is hidden from some.
///
/// A leg of a task sees its tool in any case: the request that began the task was admitted, and the leg has neither token nor
/// extensions.
pub(super) fn is_seen<T: ListItem>(
    server: &Runtime,
    item: &T,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> bool {
    if !item.per_caller().hides() || carrier::is_a_task(caller) {
        return true;
    }
    caller_info(server, request, caller).is_ok_and(|info| item.per_caller().shows(item.key(), &info))
}

/// Checks the headers in which a request repeats arguments of a tool that some callers do not see. The transport checks those of the other tools: for
/// this one, its refusal would tell a caller that the tool exists.
pub(super) fn check_hidden_params(
    params: &ParamHeaders,
    arguments: Option<&RawValue>,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<(), Refusal> {
    match caller.headers {
        Some(headers) if carrier::has_param_headers(request) => {
            check_params(params, arguments, headers).map_err(|error| Refusal::Again(Box::new(error)))
        }
        _ => Ok(()),
    }
}
