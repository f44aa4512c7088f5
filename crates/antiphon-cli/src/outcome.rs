//! The outcome of a call, printed for people or as JSON.

use crate::{console, failure::Exit, failure::Failure, sanitize};
use antiphon::{
    client::{Finished, PendingCall},
    wire::{BlobOrText, CallToolResult, ContentBlock, ResourceContents},
};
use serde::Serialize;

/// The outcome of a call.
pub(crate) enum Outcome {
    Done(Finished),
    /// The call waits for answers. `missing` describes the missing ones, if they were needed.
    Pending {
        pending: Box<PendingCall>,
        missing: Option<String>,
    },
    Failed(Failure),
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct JsonOutput<'a, R> {
    status: &'static str,
    rounds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<&'a PendingCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl Outcome {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Done(Finished::Tool(result)) if result.failed() => Exit::ToolFailed,
            Self::Done(_) => Exit::Done,
            Self::Pending { .. } => Exit::Pending,
            Self::Failed(failure) => failure.exit,
        }
    }

    /// Prints one JSON object.
    pub(crate) fn print_json(&self, rounds: u32) {
        let mut line = JsonOutput { status: "done", rounds, result: None, pending: None, error: None };
        let tool_failure;
        match self {
            Self::Done(finished) => {
                line.result = Some(finished);
                if let Finished::Tool(result) = finished
                    && result.failed()
                {
                    line.status = "error";
                    tool_failure = failure_of(result);
                    line.error = Some(&tool_failure);
                }
            }
            Self::Pending { pending, missing } => {
                (line.status, line.pending) = ("pending", Some(&**pending));
                missing.iter().for_each(|missing| console::note(&format!("error: {missing}")));
            }
            Self::Failed(failure) => {
                (line.status, line.error) = ("error", Some(failure));
                line.pending = failure.pending.as_deref();
                console::failed(failure);
            }
        }
        print_object(&line);
    }

    /// Prints the result for a person, or a pending call as JSON.
    pub(crate) fn print(&self) {
        match self {
            Self::Done(finished) => print_finished(finished),
            Self::Pending { missing: Some(missing), .. } => console::note(&format!("error: {missing}")),
            Self::Pending { pending, missing: None } => print_object(pending),
            Self::Failed(failure) => {
                console::failed(failure);
                if failure.pending.is_some() {
                    console::note(
                        "the answers are lost; with --json they are printed, and `resume` continues the call",
                    );
                }
            }
        }
    }
}

/// Prints the result of a request without questions as one JSON object.
pub(crate) fn print_result_json(result: &impl Serialize) {
    print_object(&JsonOutput { status: "done", rounds: 0, result: Some(result), pending: None, error: None });
}

fn print_object(object: &impl Serialize) {
    match serde_json::to_string(object) {
        Ok(text) => console::out_json(&text),
        Err(fault) => console::note(&format!("error: the result cannot be written as JSON: {fault}")),
    }
}

fn failure_of(result: &CallToolResult) -> Failure {
    let message = result.first_text().unwrap_or("the tool failed").to_owned();
    Failure { exit: Exit::ToolFailed, kind: "tool", message, code: None, pending: None }
}

fn print_finished(finished: &Finished) {
    match finished {
        Finished::Tool(result) => {
            result.content.iter().for_each(|block| console::out_theirs(&block_text(block)));
            if result.content.is_empty()
                && let Some(data) = &result.structured_content
            {
                console::out_theirs(&data.to_string());
            }
            if result.failed() {
                console::note("the tool failed");
            }
        }
        Finished::Prompt(result) => result.messages.iter().for_each(|message| {
            let who = message.role.as_str();
            console::out_theirs(&format!("{who}: {}", block_text(&message.content)));
        }),
        Finished::Resource(result) => {
            result.contents.iter().for_each(|contents| console::out_theirs(&contents_text(contents)));
        }
        _ => console::note("the result is of a kind that cannot be shown here"),
    }
}

/// Returns the text of a content block, or a description of another kind of content.
fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            format!("[image: {}, {} bytes in base64]", image.mime_type, image.data.len())
        }
        ContentBlock::Audio(audio) => {
            format!("[audio: {}, {} bytes in base64]", audio.mime_type, audio.data.len())
        }
        ContentBlock::ResourceLink(link) => format!("[resource: {}]", sanitize::line(&link.resource.uri)),
        ContentBlock::Resource(embedded) => contents_text(&embedded.resource),
        _ => "[content of an unknown type; use --json to print it]".to_owned(),
    }
}

fn contents_text(contents: &ResourceContents) -> String {
    match &contents.body {
        BlobOrText::Text(text) => text.clone(),
        BlobOrText::Blob(blob) => {
            format!("[{}: {} bytes in base64]", sanitize::line(&contents.uri), blob.len())
        }
    }
}
