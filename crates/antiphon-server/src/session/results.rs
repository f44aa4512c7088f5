//! Results in the form of an earlier version.
//!
//! Each type of result writes itself, so that a member is changed only where its method has it. A session gets no
//! `resultType`, no cache hints, and the name of the server only in its handshake.

use antiphon_wire::{
    AudioContent, CallToolResult, CompleteResult, ContentBlock, GetPromptResult, Meta, PromptMessage,
    ProtocolVersion, ReadResourceResult, ResourceContents, ResourceLink, meta_keys,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};
use std::borrow::Cow;

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
