//! Both ways to read a request, held against each other. The fuzz target `request_reader` takes this in too.

use antiphon_seal::canonical;
use antiphon_wire::{Incoming, InputResponses, RequestMeta, RequestParams, UniqueNames, WholeRequest};
use serde_json::value::RawValue;
use std::fmt::Debug;

/// A message as both readers show it: all that was read, in one line.
fn shown(
    id: &impl Debug,
    method: &str,
    text: &str,
    params: &RequestParams<'_>,
    meta: &RequestMeta<'_>,
) -> String {
    format!("{id:?} {method:?} {text:?} {params:?} {meta:?}")
}

/// The other readers, one after the other: the oracle. `None` if they read no request with complete metadata.
fn in_steps(bytes: &[u8]) -> Option<(String, bool)> {
    let Ok(Incoming::Request(request)) = Incoming::parse(bytes) else { return None };
    let text = request.params?.get();
    let params: RequestParams<'_> = serde_json::from_str(text).ok()?;
    let meta: RequestMeta<'_> = serde_json::from_str(params.meta?.get()).ok()?;
    (meta.protocol_version.is_some() && meta.asks.is_some()).then_some(())?;
    let is_unique = UniqueNames::from_walk(text, canonical::check).is_ok();
    Some((shown(&request.id, &request.method, text, &params, &meta), is_unique))
}

/// Checks that answers are read from this text as serde reads them.
fn answers_agree(text: &RawValue) -> Result<(), String> {
    let members = |answers: InputResponses| -> Vec<(String, String)> {
        answers.iter().map(|(key, answer)| (key.to_owned(), answer.get().to_owned())).collect()
    };
    let read = InputResponses::read(text).ok().map(members);
    let by_serde = serde_json::from_str(text.get()).ok().map(members);
    if read == by_serde { Ok(()) } else { Err(format!("answers: {read:?}\nby serde: {by_serde:?}")) }
}

/// Checks that the other readers read the message to the same values, if the reader reads it. Returns whether it does.
pub(crate) fn agrees(bytes: &[u8]) -> Result<bool, String> {
    let Some(whole) = WholeRequest::read(bytes) else { return Ok(false) };
    let text = whole.text.get();
    let read = shown(&whole.id, whole.method, text, &whole.params, &whole.meta);
    if whole.meta.protocol_version.as_deref() != Some(whole.version) {
        return Err(format!("two versions: {read}"));
    }
    [whole.params.input_responses, whole.params.arguments]
        .into_iter()
        .flatten()
        .try_for_each(answers_agree)?;
    match in_steps(bytes) {
        Some((other, true)) if other == read => Ok(true),
        other => Err(format!("read: {read}\nin steps: {other:?}")),
    }
}
