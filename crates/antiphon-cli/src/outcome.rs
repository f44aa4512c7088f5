//! The outcome of a call, printed for people or as JSON, and its binary contents as files.

use crate::{
    console,
    failure::{self, Exit, Failure},
};
use antiphon::{
    client::{Finished, PendingCall, tasks::TaskHandle},
    wire::{
        CallToolResult, ContentBlock,
        content::{BlobOrText, ResourceContents},
    },
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Serialize;
use std::{
    cell::Cell,
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

/// The outcome of a call.
pub(crate) enum Outcome {
    Done(Finished),
    /// The call is done, although one of its questions has no answer: the server went on without it.
    Unanswered {
        finished: Finished,
        missing: String,
    },
    /// The call waits for answers. `missing` describes the missing ones, if they were needed.
    Pending {
        pending: Box<PendingCall>,
        missing: Option<String>,
    },
    /// The call became a task, which continues. `missing` describes the missing answers, if they were needed.
    Task {
        handle: Box<TaskHandle>,
        missing: Option<String>,
    },
    Failed(Failure),
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct JsonOutput<'a, R> {
    status: &'static str,
    /// The name of the server in its file, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    rounds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<&'a PendingCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a TaskHandle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl Outcome {
    /// Adds the question of a session that has no answer. A result, a pending call or a task stays beside it.
    pub(crate) fn with_unanswered(self, unanswered: Option<String>) -> Self {
        let Some(text) = unanswered else { return self };
        match self {
            Self::Done(finished) => Self::Unanswered { finished, missing: text },
            Self::Pending { pending, .. } => Self::Pending { pending, missing: Some(text) },
            Self::Task { handle, .. } => Self::Task { handle, missing: Some(text) },
            Self::Failed(Failure { task: Some(handle), .. }) => Self::Task { handle, missing: Some(text) },
            Self::Unanswered { .. } => self,
            Self::Failed(_) => Self::Failed(Failure::unanswered(text)),
        }
    }

    /// Returns the result.
    fn finished(&self) -> Option<&Finished> {
        match self {
            Self::Done(finished) | Self::Unanswered { finished, .. } => Some(finished),
            _ => None,
        }
    }

    /// Returns the text of a tool that failed, or of an error.
    pub(crate) fn error_text(&self) -> Option<&str> {
        match self {
            Self::Failed(failure) => Some(&failure.message),
            _ => match self.finished()? {
                Finished::Tool(result) if result.failed() => result.first_text(),
                _ => None,
            },
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Done(Finished::Tool(result)) if result.failed() => Exit::ToolFailed,
            Self::Done(_) => Exit::Done,
            Self::Unanswered { .. } | Self::Pending { .. } | Self::Task { missing: Some(_), .. } => {
                Exit::Pending
            }
            Self::Task { missing: None, .. } => Exit::Done,
            Self::Failed(failure) => failure.exit,
        }
    }

    /// Prints one JSON object.
    pub(crate) fn print_json(&self, rounds: u32) {
        let mut line = JsonOutput {
            status: "done",
            server: None,
            rounds,
            result: None,
            pending: None,
            task: None,
            error: None,
        };
        let found;
        match self {
            Self::Done(finished) => {
                line.result = Some(finished);
                if let Finished::Tool(result) = finished
                    && result.failed()
                {
                    line.status = "error";
                    found = failure_of(result);
                    line.error = Some(&found);
                }
            }
            Self::Unanswered { finished, missing } => {
                found = Failure::unanswered(missing.clone());
                (line.status, line.result, line.error) = ("error", Some(finished), Some(&found));
                console::failed(&found);
            }
            Self::Pending { pending, missing } => {
                (line.status, line.pending) = ("pending", Some(&**pending));
                missing.iter().for_each(|missing| console::note(&format!("error: {missing}")));
            }
            Self::Task { handle, missing } => {
                (line.status, line.task) = ("task", Some(&**handle));
                missing.iter().for_each(|missing| console::note(&format!("error: {missing}")));
            }
            Self::Failed(failure) => {
                (line.status, line.error) = ("error", Some(failure));
                (line.pending, line.task) = (failure.pending.as_deref(), failure.task.as_deref());
                console::failed(failure);
                failure.advice.iter().for_each(|advice| console::hint(advice.text(true)));
            }
        }
        print_object(&line);
    }

    /// Prints a note about a structured result in a build without the feature `schema`, which compares it with its schema.
    pub(crate) fn note_unchecked(&self) {
        if let Some(Finished::Tool(result)) = self.finished()
            && !cfg!(feature = "schema")
            // Servers that write each member of a type write `null` for what they do not have.
            && result.structured_content.as_ref().is_some_and(|value| !value.is_null())
        {
            console::hint(&failure::absent("the check of a structured result against its schema", "schema"));
        }
    }

    /// Saves the binary contents of a result without printing the result. The paths go to standard error.
    pub(crate) fn save(&self, saver: &Saver) {
        let Some(finished) = self.finished() else { return };
        for text in texts(finished, Some(saver)).iter().filter(|text| text.contains(SAVED)) {
            console::hint(text);
        }
    }

    /// Prints the result for a person, or a pending call as JSON. Binary contents are saved if there is a `saver`.
    pub(crate) fn print(&self, saver: Option<&Saver>) {
        match self {
            Self::Done(finished) => print_finished(finished, saver),
            Self::Unanswered { finished, missing } => {
                print_finished(finished, saver);
                console::note(&format!("error: {missing}"));
            }
            Self::Pending { missing: Some(missing), .. } => console::note(&format!("error: {missing}")),
            Self::Pending { pending, missing: None } => print_object(pending),
            Self::Task { handle, missing } => {
                missing.iter().for_each(|missing| console::note(&format!("error: {missing}")));
                console::out(&console::line(handle.task_id()));
            }
            Self::Failed(failure) => {
                console::failed(failure);
                if let Some(task) = &failure.task {
                    let id = console::line(task.task_id());
                    console::hint(&format!(
                        "the task continues at the server; `task watch {id}` continues here"
                    ));
                }
                print_advice(failure);
            }
        }
    }
}

/// The note about a pending call that is printed.
pub(crate) const PROTECT: &str =
    "The pending call contains the state of the call: protect it like a password.";

/// Prints the advice after a failure. After completed steps, the call is printed: without its state, only a new call is left,
/// which repeats them.
fn print_advice(failure: &Failure) {
    let Some(advice) = failure.advice else { return };
    let printed = failure.pending.as_ref().filter(|_| failure.is_after_steps && advice.resumes());
    if let Some(pending) = printed {
        print_object(pending);
        console::hint(PROTECT);
    }
    console::hint(advice.text(printed.is_some() || failure.is_in_file));
}

/// Prints the result of a request without questions as one JSON object.
pub(crate) fn print_result_json(result: &impl Serialize) {
    print_result_of(None, result);
}

/// Prints the same with the name of the server, if there are several.
pub(crate) fn print_result_of(server: Option<&str>, result: &impl Serialize) {
    print_object(&JsonOutput {
        status: "done",
        server,
        rounds: 0,
        result: Some(result),
        pending: None,
        task: None,
        error: None,
    });
}

/// Prints the failure of one of several servers as one JSON object.
pub(crate) fn print_failure_json(server: &str, failure: &Failure) {
    print_object(&JsonOutput::<()> {
        status: "error",
        server: Some(server),
        rounds: 0,
        result: None,
        pending: None,
        task: None,
        error: Some(failure),
    });
}

fn print_object(object: &impl Serialize) {
    match serde_json::to_string(object) {
        Ok(text) => console::out_json(&text),
        Err(fault) => console::note(&format!("error: the result cannot be written as JSON: {fault}")),
    }
}

fn failure_of(result: &CallToolResult) -> Failure {
    let message = result.first_text().unwrap_or("the tool failed").to_owned();
    Failure::new(Exit::ToolFailed, "tool", message)
}

/// Prints the result of a tool for a person.
pub(crate) fn print_tool_result(result: CallToolResult) {
    print_finished(&Finished::Tool(result), None);
}

fn print_finished(finished: &Finished, saver: Option<&Saver>) {
    texts(finished, saver).iter().for_each(|text| console::out_theirs(text));
    if let Finished::Tool(result) = finished
        && result.failed()
    {
        console::note("the tool failed");
    }
}

/// Returns the texts of a result. Binary contents are described, or saved.
fn texts(finished: &Finished, saver: Option<&Saver>) -> Vec<String> {
    match finished {
        Finished::Tool(result) if result.content.is_empty() => {
            result.structured_content.iter().map(ToString::to_string).collect()
        }
        Finished::Tool(result) => result.content.iter().map(|block| block_text(block, saver)).collect(),
        Finished::Prompt(result) => {
            let messages = result.messages.iter();
            messages
                .map(|message| format!("{}: {}", message.role.as_str(), block_text(&message.content, saver)))
                .collect()
        }
        Finished::Resource(result) => {
            result.contents.iter().map(|contents| contents_text(contents, saver)).collect()
        }
        _ => vec!["[a result of an unknown kind; use --json to print it]".to_owned()],
    }
}

/// Returns the text of a content block, or a description of another kind of content.
fn block_text(block: &ContentBlock, saver: Option<&Saver>) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", &image.mime_type, &image.mime_type, &image.data, saver),
        ContentBlock::Audio(audio) => binary("audio", &audio.mime_type, &audio.mime_type, &audio.data, saver),
        ContentBlock::ResourceLink(link) => format!("[resource: {}]", console::line(&link.resource.uri)),
        ContentBlock::Resource(embedded) => contents_text(&embedded.resource, saver),
        _ => "[content of an unknown type; use --json to print it]".to_owned(),
    }
}

fn contents_text(contents: &ResourceContents, saver: Option<&Saver>) -> String {
    match &contents.body {
        BlobOrText::Text(text) => text.clone(),
        BlobOrText::Blob(blob) => {
            let media_type = contents.mime_type.as_deref().unwrap_or_default();
            binary("resource", &contents.uri, media_type, blob, saver)
        }
    }
}

/// The word before the path of a saved file.
const SAVED: &str = ", saved to ";

/// Describes a binary content by `name`, and saves it.
fn binary(kind: &str, name: &str, media_type: &str, base64: &str, saver: Option<&Saver>) -> String {
    let label =
        if kind == "resource" { console::line(name) } else { format!("{kind}: {}", console::line(name)) };
    match saver.and_then(|saver| saver.save(kind, media_type, base64)) {
        Some(path) => format!("[{label}{SAVED}{path}]"),
        None if kind == "resource" => format!("[{label}: {} bytes in base64]", base64.len()),
        None => format!("[{label}, {} bytes in base64]", base64.len()),
    }
}

// `--save`: the binary contents of a result, as files.

/// The maximum number of files of one name that are tried.
const NAMES: u32 = 10_000;

/// The endings of files, by media type.
const ENDINGS: [(&str, &str); 15] = [
    ("application/json", "json"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/wav", "wav"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg"),
    ("image/webp", "webp"),
    ("text/csv", "csv"),
    ("text/plain", "txt"),
];

/// The directory of the files.
pub(crate) struct Saver {
    directory: PathBuf,
    failed: Cell<bool>,
}

impl Saver {
    /// Creates the directory if there is none.
    pub(crate) fn new(directory: PathBuf) -> Result<Self, Failure> {
        fs::create_dir_all(&directory)
            .map_err(|fault| Failure::usage(format!("--save {}: {fault}", directory.display())))?;
        Ok(Self { directory, failed: Cell::new(false) })
    }

    /// Returns `true` if a file could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Writes a new file, and returns its path as a text. The server chooses no part of its name, and no file is replaced.
    pub(crate) fn save(&self, kind: &str, media_type: &str, base64: &str) -> Option<String> {
        match self.write(kind, media_type, base64) {
            Ok(path) => Some(path.display().to_string()),
            Err(text) => {
                self.failed.set(true);
                console::note(&format!("error: {kind} was not saved: {text}"));
                None
            }
        }
    }

    fn write(&self, kind: &str, media_type: &str, base64: &str) -> Result<PathBuf, String> {
        let bytes = BASE64_STANDARD.decode(base64).map_err(|fault| format!("it is not base64: {fault}"))?;
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let ending =
            ENDINGS.iter().find(|(known, _)| *known == media_type).map_or("bin", |(_, ending)| ending);
        for number in 1..=NAMES {
            let path = self.directory.join(format!("{kind}-{number}.{ending}"));
            let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Err(fault) if fault.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened.map_err(|fault| format!("{}: {fault}", path.display()))?,
            };
            file.write_all(&bytes).map_err(|fault| format!("{}: {fault}", path.display()))?;
            return Ok(path);
        }
        Err(format!("{} has too many files", self.directory.display()))
    }
}
