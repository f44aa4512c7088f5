//! Answers the questions of one round, from the command line or at the terminal.
//!
//! > Clients **MUST** provide clear indication of which server is requesting information
//! >
//! > Respect user privacy and provide clear decline and cancel options

mod form;
mod prompt;
mod task;
mod url;

pub(crate) use task::{answer_task, summary};

use crate::{
    answer_flags::{AnswerFlags, FlagAnswer},
    console,
    failure::Failure,
    sanitize,
};
use antiphon::{
    client::{ElicitAsk, PendingCall, consent::form_warnings},
    wire::{Action, ElicitRequest, ElicitResult, FormSchema, InputRequest},
};

/// The reason why a round has no complete answers.
pub(crate) enum RoundError {
    /// The lack of a terminal. The text names the answers to give.
    Missing(String),
    /// An error.
    Failed(Failure),
}

impl From<Failure> for RoundError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Sets every missing answer. Sets the available answers even if others are missing.
pub(crate) fn answer_round(pending: &mut PendingCall, answers: &AnswerFlags) -> Result<(), RoundError> {
    let asks = pending.asks().clone();
    let keys: Vec<&str> = asks.iter().map(|(key, _)| key).collect();
    let header = format!(
        "{} asks, for {}:",
        sanitize::line(&pending.server().to_string()),
        sanitize::line(&pending.call().to_string())
    );
    let open = pending.missing();
    let mut missing = Vec::new();
    for (at, (key, ask)) in
        asks.iter().enumerate().filter(|(_, (key, _))| open.iter().any(|name| name == key))
    {
        let result = match ask {
            InputRequest::Elicit(ElicitRequest::Form { message, requested_schema }) => {
                let scripted = answers.to(key, &keys, Some(requested_schema))?;
                answer_form(&Question { key, header: &header, message }, requested_schema, scripted)?
            }
            InputRequest::Elicit(ElicitRequest::Url { message, url }) => {
                let mut scripted = answers.to(key, &keys, None)?;
                // In a session, the key is an id that the server made for this call, and that nobody knows before.
                if scripted.action.is_none() && !pending.has_state() {
                    let number = (at + 1).to_string();
                    scripted = answers.to(&number, &[&number], None)?;
                }
                answer_url(&Question { key, header: &header, message }, url, &scripted)?
            }
            other => {
                let Some(answer) = answers.client_answer(other) else {
                    return Err(undeclared(pending, key, other).into());
                };
                pending.answer(key, &answer).map_err(|error| Failure::usage(error.to_string()))?;
                continue;
            }
        };
        match result {
            AnswerResult::Answer(answer) => {
                pending.answer(key, &answer).map_err(|error| Failure::usage(error.to_string()))?;
            }
            AnswerResult::Missing(mut names) => missing.append(&mut names),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(RoundError::Missing(self::missing(&missing)))
}

/// Returns the message that names the missing answers.
fn missing(missing_answer: &[MissingAnswer]) -> String {
    let examples: Vec<String> =
        missing_answer.iter().map(|name| format!("--answer {}", example(name))).collect();
    let names: Vec<&str> = missing_answer.iter().map(|name| name.name.as_str()).collect();
    sanitize::line(&format!(
        "no answer for {} and no terminal to ask: pass {}",
        names.join(", "),
        examples.join(" ")
    ))
}

/// Returns the answer to a question that comes during the call. In a session, its key is its number; a question of a task has a
/// key.
pub(crate) fn answer_session_question(
    ask: &ElicitAsk,
    answers: &AnswerFlags,
) -> Result<ElicitResult, RoundError> {
    let context = ask.context();
    let key = if answers.is_keyed() { context.key.clone() } else { context.round.to_string() };
    let server = sanitize::line(&context.server.to_string());
    let header = match context.target.as_str() {
        "" => format!("{server} asks:"),
        target => format!("{server} asks, for {} `{}`:", context.method, sanitize::line(target)),
    };
    let question = Question { key: &key, header: &header, message: ask.message() };
    let found = match ask {
        ElicitAsk::Form(form) => {
            let scripted = answers.to(&key, &[&key], Some(&form.schema))?;
            answer_form(&question, &form.schema, scripted)?
        }
        ElicitAsk::Url(url) => answer_url(&question, &url.url, &answers.to(&key, &[&key], None)?)?,
        _ => return Err(Failure::not_supported("this kind of question", &key).into()),
    };
    match found {
        AnswerResult::Answer(answer) => Ok(answer),
        AnswerResult::Missing(names) => Err(RoundError::Missing(missing(&names))),
    }
}

/// The length of a message after which the name of the server is printed again.
const LONG: usize = 1000;
const LONG_LINES: usize = 12;

/// A question, and the name of the server that asks.
struct Question<'a> {
    key: &'a str,
    header: &'a str,
    message: &'a str,
}

impl Question<'_> {
    fn show(&self) {
        console::note("");
        console::note(&console::strong(self.header));
        console::note(&sanitize::indented(self.message));
        // The first line may have scrolled out of view.
        if self.message.len() > LONG || self.message.lines().count() > LONG_LINES {
            console::note(&console::strong(self.header));
        }
    }
}

enum AnswerResult {
    Answer(ElicitResult),
    Missing(Vec<MissingAnswer>),
}

/// A missing answer. If `whole` is true, the answer is an action for the whole question.
struct MissingAnswer {
    name: String,
    whole: bool,
}

fn example(missing_answer: &MissingAnswer) -> String {
    format!("{}={}", missing_answer.name, if missing_answer.whole { "accept" } else { ".." })
}

fn answer_form(
    question: &Question<'_>,
    schema: &FormSchema,
    scripted: FlagAnswer,
) -> Result<AnswerResult, Failure> {
    if let Some(action @ (Action::Decline | Action::Cancel)) = scripted.action {
        return Ok(AnswerResult::Answer(refusal(action)));
    }
    let given = scripted.fields;
    let open: Vec<_> = schema
        .fields()
        .iter()
        .filter(|field| field.required && field.default_value().is_none() && !given.contains_key(&field.name))
        .collect();
    // If the command line has all required answers, the person is not asked, and optional fields stay empty.
    let is_scripted = open.is_empty() && (scripted.action == Some(Action::Accept) || !given.is_empty());
    if is_scripted {
        return Ok(AnswerResult::Answer(ElicitResult::accept(given)));
    }
    if !console::has_terminal() {
        let key = question.key;
        let mut missing_answer: Vec<MissingAnswer> = open
            .iter()
            .map(|field| MissingAnswer { name: format!("{key}.{}", field.name), whole: false })
            .collect();
        if missing_answer.is_empty() {
            missing_answer.push(MissingAnswer { name: key.to_owned(), whole: true });
        }
        return Ok(AnswerResult::Missing(missing_answer));
    }
    question.show();
    for warning in form_warnings(question.message, schema) {
        console::note(&format!("  Warning: {}", sanitize::line(&warning.to_string())));
    }
    Ok(AnswerResult::Answer(form::fill_in(schema, given)?))
}

fn answer_url(question: &Question<'_>, url: &str, scripted: &FlagAnswer) -> Result<AnswerResult, Failure> {
    if let Some(action @ (Action::Decline | Action::Cancel)) = scripted.action {
        return Ok(AnswerResult::Answer(refusal(action)));
    }
    if scripted.action.is_none() && !console::has_terminal() {
        return Ok(AnswerResult::Missing(vec![MissingAnswer { name: question.key.to_owned(), whole: true }]));
    }
    question.show();
    let agreed = scripted.action == Some(Action::Accept);
    Ok(AnswerResult::Answer(url::consent(question.key, url, agreed)?))
}

fn refusal(action: Action) -> ElicitResult {
    if action == Action::Decline { ElicitResult::decline() } else { ElicitResult::cancel() }
}

/// Returns the failure of an undeclared question.
///
/// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its capabilities.
fn undeclared(pending: &PendingCall, key: &str, ask: &InputRequest) -> Failure {
    Failure::not_supported(&format!("{}: `{}`", pending.server(), ask.method()), key)
}
