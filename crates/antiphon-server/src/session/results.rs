//! Results and errors in the form of an earlier version.
//!
//! Each type of result writes itself, so that a member is changed only where its method has it. A session gets no
//! `resultType`, no cache hints, and the name of the server only in its handshake.

use crate::errors::refusal::{Refusal, undeclared};
use antiphon_wire::{
    AskSupport, AudioContent, CallToolResult, CompleteResult, ContentBlock, ErrorCode, ErrorObject,
    GetPromptResult, Meta, PromptMessage, ProtocolVersion, ReadResourceResult, ResourceContents,
    ResourceLink, meta_keys,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, time::Duration};

/// A result that sessions can receive.
pub(crate) trait SessionResult {
    /// Writes the members that the result has in this version.
    fn write_members<M: SerializeMap>(
        &self,
        version: &ProtocolVersion,
        members: &mut M,
    ) -> Result<(), M::Error>;
}

/// A result, written for a session of this version.
pub(crate) struct InSession<'a, T> {
    pub(crate) version: &'a ProtocolVersion,
    pub(crate) result: &'a T,
}

impl<T: SessionResult> Serialize for InSession<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        self.result.write_members(self.version, &mut members)?;
        members.end()
    }
}

impl SessionResult for CallToolResult {
    /// Structured content that the version does not have becomes text, if there is no other content.
    fn write_members<M: SerializeMap>(
        &self,
        version: &ProtocolVersion,
        members: &mut M,
    ) -> Result<(), M::Error> {
        match &self.structured_content {
            Some(structured) if version.has_structured_content() && structured.is_object() => {
                members.serialize_entry("content", &Blocks { version, blocks: &self.content })?;
                members.serialize_entry("structuredContent", structured)?;
            }
            Some(structured) if self.content.is_empty() => {
                members.serialize_entry("content", &[ContentBlock::text(structured.to_string())])?;
            }
            _ => members.serialize_entry("content", &Blocks { version, blocks: &self.content })?,
        }
        if let Some(is_error) = self.is_error {
            members.serialize_entry("isError", &is_error)?;
        }
        write_rest(self.meta.as_ref(), &self.extra, members)
    }
}

impl SessionResult for GetPromptResult {
    fn write_members<M: SerializeMap>(
        &self,
        version: &ProtocolVersion,
        members: &mut M,
    ) -> Result<(), M::Error> {
        if let Some(description) = &self.description {
            members.serialize_entry("description", description)?;
        }
        members.serialize_entry("messages", &Messages { version, messages: &self.messages })?;
        write_rest(self.meta.as_ref(), &self.extra, members)
    }
}

impl SessionResult for ReadResourceResult {
    fn write_members<M: SerializeMap>(&self, _: &ProtocolVersion, members: &mut M) -> Result<(), M::Error> {
        members.serialize_entry("contents", &self.contents)?;
        write_rest(self.meta.as_ref(), &self.extra, members)
    }
}

impl SessionResult for CompleteResult {
    fn write_members<M: SerializeMap>(&self, _: &ProtocolVersion, members: &mut M) -> Result<(), M::Error> {
        members.serialize_entry("completion", &self.completion)?;
        write_rest(self.meta.as_ref(), &self.extra, members)
    }
}

/// Writes `_meta` without the name of the server, and the members that have no field.
fn write_rest<M: SerializeMap>(
    meta: Option<&Meta>,
    extra: &Map<String, Value>,
    members: &mut M,
) -> Result<(), M::Error> {
    if let Some(Meta(meta)) = meta {
        let own: Vec<_> = meta.iter().filter(|(name, _)| *name != meta_keys::SERVER_INFO).collect();
        if !own.is_empty() {
            members.serialize_entry("_meta", &Pairs(&own))?;
        }
    }
    extra.iter().try_for_each(|(name, value)| members.serialize_entry(name, value))
}

/// An object of these members.
struct Pairs<'a>(&'a [(&'a String, &'a Value)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

struct Blocks<'a> {
    version: &'a ProtocolVersion,
    blocks: &'a [ContentBlock],
}

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.blocks.iter().map(|block| block_for(self.version, block)))
    }
}

struct Messages<'a> {
    version: &'a ProtocolVersion,
    messages: &'a [PromptMessage],
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.messages.iter().map(|message| {
            match block_for(self.version, &message.content) {
                Cow::Borrowed(_) => Cow::Borrowed(message),
                Cow::Owned(content) => {
                    let mut message = message.clone();
                    message.content = content;
                    Cow::Owned(message)
                }
            }
        }))
    }
}

/// Replaces a block whose type this version does not have, because a client may refuse the whole result for one such
/// block.
fn block_for<'a>(version: &ProtocolVersion, block: &'a ContentBlock) -> Cow<'a, ContentBlock> {
    match block {
        ContentBlock::ResourceLink(link) if !version.has_resource_links() => {
            let ResourceLink { resource, .. } = &**link;
            Cow::Owned(ContentBlock::text(format!("{}: {}", resource.name, resource.uri)))
        }
        ContentBlock::Audio(AudioContent { data, mime_type, .. }) if !version.has_audio() => {
            let audio = ResourceContents::blob(format!("data:{mime_type},"), data.as_str());
            Cow::Owned(ContentBlock::resource(audio.with_mime_type(mime_type.as_str())))
        }
        known => Cow::Borrowed(known),
    }
}

/// The maximum length of a client's error text in an error, in characters.
const ERROR_TEXT: usize = 500;

/// Converts a refusal to the error of an earlier version.
pub(crate) fn downgrade_refusal(refusal: &Refusal) -> ErrorObject {
    match refusal {
        // These versions have no code for a missing capability.
        Refusal::Capability { missing } => ErrorObject::invalid_request(not_supported(*missing)),
        Refusal::Extension { id } => ErrorObject::invalid_request(undeclared(id)),
        Refusal::NotFound { uri } => ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "Resource not found")
            .with_data(json!({ "uri": uri })),
        Refusal::AfterSteps { refusal, done, kept } => {
            refusal.to_error_after(downgrade_refusal(refusal), done, *kept)
        }
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
