//! Results and errors in the form of an earlier version: unknown members are removed.

use crate::{refusal::Refusal, session::session::Session};
use antiphon_wire::{AskSupport, ErrorCode, ErrorObject, ProtocolVersion, meta_keys};
use serde::{Serialize, de::IgnoredAny};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use std::{collections::BTreeMap, time::Duration};

/// The maximum length of a client's error text in an error, in characters.
const ERROR_TEXT: usize = 500;

type Members = BTreeMap<String, Box<RawValue>>;

/// Converts a result to the version of this session.
///
/// # Errors
/// If it cannot be written as JSON.
pub(crate) fn downgrade_result(
    session: &Session,
    result: &(impl Serialize + ?Sized),
) -> Result<Box<RawValue>, serde_json::Error> {
    let text = serde_json::to_string(result)?;
    let mut members: Members = serde_json::from_str(&text)?;
    for unknown in ["resultType", "ttlMs", "cacheScope"] {
        members.remove(unknown);
    }
    if let Some(meta) = members.get("_meta") {
        match without_server_info(meta)? {
            Some(rest) => members.insert("_meta".to_owned(), rest),
            None => members.remove("_meta"),
        };
    }
    let version = session.version();
    let structured = version.has_version_header();
    let is_unknown = |content: &RawValue| !structured || !is_object(content);
    if members.get("structuredContent").is_some_and(|content| is_unknown(content)) {
        structured_as_text(&mut members)?;
    }
    downgrade_content(&mut members, version)?;
    if let Some(tools) = members.get("tools") {
        let tools = downgrade_tools(tools, structured)?;
        members.insert("tools".to_owned(), tools);
    }
    to_raw_value(&members)
}

/// Removes structured content, and adds it as text if there is no other content.
fn structured_as_text(members: &mut Members) -> Result<(), serde_json::Error> {
    let Some(structured) = members.remove("structuredContent") else { return Ok(()) };
    let is_empty = |content: &str| {
        serde_json::from_str::<Vec<IgnoredAny>>(content).is_ok_and(|blocks| blocks.is_empty())
    };
    if members.get("content").is_none_or(|content| is_empty(content.get())) {
        let text = to_raw_value(&[json!({ "type": "text", "text": structured.get() })])?;
        members.insert("content".to_owned(), text);
    }
    Ok(())
}

/// Converts the content of a tool's result, and of a prompt's messages. Blocks whose type this version does not have
/// are replaced by a known type, because a client may refuse the whole result for one such block.
fn downgrade_content(members: &mut Members, version: &ProtocolVersion) -> Result<(), serde_json::Error> {
    if version.has_resource_links() && version.has_audio() {
        return Ok(());
    }
    if let Some(content) = members.get("content") {
        let mut blocks: Vec<Value> = serde_json::from_str(content.get())?;
        blocks.iter_mut().for_each(|block| downgrade_block(block, version));
        members.insert("content".to_owned(), to_raw_value(&blocks)?);
    }
    if let Some(messages) = members.get("messages") {
        let mut messages: Vec<Value> = serde_json::from_str(messages.get())?;
        for block in messages.iter_mut().filter_map(|message| message.get_mut("content")) {
            downgrade_block(block, version);
        }
        members.insert("messages".to_owned(), to_raw_value(&messages)?);
    }
    Ok(())
}

fn downgrade_block(block: &mut Value, version: &ProtocolVersion) {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    let known = match text("type") {
        "resource_link" if !version.has_resource_links() => {
            json!({ "type": "text", "text": format!("{}: {}", text("name"), text("uri")) })
        }
        "audio" if !version.has_audio() => {
            let kind = text("mimeType");
            let sound = json!({ "uri": format!("data:{kind},"), "mimeType": kind, "blob": text("data") });
            json!({ "type": "resource", "resource": sound })
        }
        _ => return,
    };
    *block = known;
}

/// Removes the server's name and version, which a session receives once, in the handshake.
fn without_server_info(meta: &RawValue) -> Result<Option<Box<RawValue>>, serde_json::Error> {
    let mut members: Members = serde_json::from_str(meta.get())?;
    members.remove(meta_keys::SERVER_INFO);
    if members.is_empty() { Ok(None) } else { to_raw_value(&members).map(Some) }
}

/// Removes output schemas that this version does not support: it has only objects, or none.
fn downgrade_tools(tools: &RawValue, structured: bool) -> Result<Box<RawValue>, serde_json::Error> {
    let mut tools: Vec<Members> = serde_json::from_str(tools.get())?;
    for tool in &mut tools {
        let describes_object = |schema: &RawValue| {
            serde_json::from_str::<Value>(schema.get()).is_ok_and(|schema| schema["type"] == "object")
        };
        if tool.get("outputSchema").is_some_and(|schema| !structured || !describes_object(schema)) {
            tool.remove("outputSchema");
        }
    }
    to_raw_value(&tools)
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// Converts a refusal to the error of an earlier version.
pub(crate) fn downgrade_refusal(refusal: &Refusal) -> ErrorObject {
    match refusal {
        // These versions have no code for a missing capability.
        Refusal::Capability { missing } => ErrorObject::invalid_request(not_supported(*missing)),
        Refusal::NotFound { uri } => ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "Resource not found")
            .with_data(json!({ "uri": uri })),
        other => other.to_error(),
    }
}

/// Returns the text for a question that the client answered with an error. It repeats the beginning of the client's own
/// text.
pub(crate) fn not_answered(key: &str, error: &ErrorObject) -> String {
    let said = &error.message;
    let cut = said.char_indices().nth(ERROR_TEXT).map(|(at, _)| &said[..at]);
    let (said, more) = (cut.unwrap_or(said), if cut.is_some() { "..." } else { "" });
    // The new error is itself an internal error, and its code is shown too.
    let code = match error.code {
        ErrorCode::INTERNAL_ERROR => String::new(),
        code => format!(" (error {code})"),
    };
    format!("The client did not answer `{key}`{code}: {said}{more}")
}

/// Returns the text for a question that was not answered in time.
pub(crate) fn too_late(key: &str, waited: Duration) -> String {
    format!("`{key}` was not answered within {} seconds", waited.as_secs())
}

fn not_supported(missing: AskSupport) -> String {
    let table = [
        (missing.form, "Elicitation not supported"),
        (missing.url, "URL elicitation not supported"),
        (missing.sampling, "Sampling not supported"),
        (missing.sampling_tools, "Sampling with tools not supported"),
        (missing.sampling_context, "Sampling with context not supported"),
        (missing.roots, "List roots not supported"),
    ];
    let missing: Vec<&str> =
        table.iter().filter(|(is_missing, _)| *is_missing).map(|(_, text)| *text).collect();
    missing.join(", ")
}
