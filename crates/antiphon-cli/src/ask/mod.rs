//! Answers the questions of one round: from the command line, else at the terminal.
//!
//! > Clients **MUST** provide clear indication of which server is requesting information
//! >
//! > Respect user privacy and provide clear decline and cancel options

mod form;
mod prompt;
mod url;

use crate::{
    answers::{Answers, Scripted},
    console,
    failure::Failure,
    show,
};
use antiphon::{
    client::{ElicitAsk, PendingCall},
    wire::{Action, ElicitRequest, ElicitResult, FormSchema, InputRequest},
};
use serde_json::{Map, Value};

/// Why a round has not all its answers.
pub(crate) enum Unanswered {
    /// There is nobody to ask: names the answers to give.
    Missing(String),
    /// It cannot go on.
    Failed(Failure),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What the person does with a question.
pub(crate) enum Decision {
    Accept(Map<String, Value>),
    Refuse(Action),
}

/// Sets every answer that is missing. Those that were found are set even if others are not.
pub(crate) fn answer_round(pending: &mut PendingCall, answers: &Answers) -> Result<(), Unanswered> {
    let asks = pending.asks().clone();
    let keys: Vec<&str> = asks.iter().map(|(key, _)| key).collect();
    let header = format!(
        "{} asks, for {}:",
        show::line(&pending.server().to_string()),
        show::line(&pending.call().to_string())
    );
    let open: Vec<String> = pending.missing().into_iter().map(str::to_owned).collect();
    let mut missing = Vec::new();
    for (key, ask) in asks.iter().filter(|(key, _)| open.iter().any(|name| name == key)) {
        let result = match ask {
            InputRequest::Elicit(ElicitRequest::Form { message, requested_schema }) => {
                let scripted = answers.to(key, &keys, Some(requested_schema))?;
                answer_form(&Question { key, header: &header, message }, requested_schema, scripted)?
            }
            InputRequest::Elicit(ElicitRequest::Url { message, url }) => {
                let scripted = answers.to(key, &keys, None)?;
                answer_url(&Question { key, header: &header, message }, url, &scripted)?
            }
            other => {
                let Some(answer) = answers.of_the_client(other) else {
                    return Err(undeclared(pending, key, other).into());
                };
                pending.answer(key, &answer).map_err(|error| Failure::usage(error.to_string()))?;
                continue;
            }
        };
        match result {
            Found::Answer(answer) => {
                pending.answer(key, &answer).map_err(|error| Failure::usage(error.to_string()))?;
            }
            Found::Missing(mut names) => missing.append(&mut names),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Unanswered::Missing(self::missing(&missing)))
}

/// Which answers to give.
fn missing(needed: &[Needed]) -> String {
    let examples: Vec<String> = needed.iter().map(|name| format!("--answer {}", example(name))).collect();
    let names: Vec<&str> = needed.iter().map(|name| name.name.as_str()).collect();
    show::line(&format!(
        "no answer for {} and no terminal to ask: pass {}",
        names.join(", "),
        examples.join(" ")
    ))
}

/// The answer to a question that a session asks while a call is under way. It has no key but its number.
pub(crate) fn answer_live(ask: &ElicitAsk, answers: &Answers) -> Result<ElicitResult, Unanswered> {
    let context = ask.context();
    let key = context.round.to_string();
    let server = show::line(&context.server.to_string());
    let header = match context.target.as_str() {
        "" => format!("{server} asks:"),
        target => format!("{server} asks, for {} `{}`:", context.method, show::line(target)),
    };
    let question = Question { key: &key, header: &header, message: ask.message() };
    let found = match ask {
        ElicitAsk::Form(form) => {
            let scripted = answers.to(&key, &[&key], Some(&form.schema))?;
            answer_form(&question, &form.schema, scripted)?
        }
        ElicitAsk::Url(url) => answer_url(&question, &url.url, &answers.to(&key, &[&key], None)?)?,
    };
    match found {
        Found::Answer(answer) => Ok(answer),
        Found::Missing(names) => Err(Unanswered::Missing(missing(&names))),
    }
}

/// After a message longer than this, who asks is said once more.
const LONG: usize = 1000;
const LONG_LINES: usize = 12;

/// Who asks what.
struct Question<'a> {
    key: &'a str,
    header: &'a str,
    message: &'a str,
}

impl Question<'_> {
    fn show(&self) {
        console::note("");
        console::note(&console::strong(self.header));
        console::note(&show::indented(self.message));
        // It may have scrolled away.
        if self.message.len() > LONG || self.message.lines().count() > LONG_LINES {
            console::note(&console::strong(self.header));
        }
    }
}

enum Found {
    Answer(ElicitResult),
    Missing(Vec<Needed>),
}

/// An answer that somebody has to give.
struct Needed {
    name: String,
    whole: bool,
}

fn example(needed: &Needed) -> String {
    format!("{}={}", needed.name, if needed.whole { "accept" } else { ".." })
}

fn answer_form(question: &Question<'_>, schema: &FormSchema, scripted: Scripted) -> Result<Found, Failure> {
    if let Some(action @ (Action::Decline | Action::Cancel)) = scripted.action {
        return Ok(Found::Answer(refusal(action)));
    }
    let given = scripted.fields;
    let open: Vec<_> = schema
        .fields()
        .iter()
        .filter(|field| field.required && field.default_value().is_none() && !given.contains_key(&field.name))
        .collect();
    // With every answer that is needed on the command line, nobody is asked; what is optional stays empty.
    let is_scripted = open.is_empty() && (scripted.action == Some(Action::Accept) || !given.is_empty());
    if is_scripted {
        return Ok(Found::Answer(ElicitResult::accept(given)));
    }
    if !console::has_terminal() {
        let key = question.key;
        let mut needed: Vec<Needed> =
            open.iter().map(|field| Needed { name: format!("{key}.{}", field.name), whole: false }).collect();
        if needed.is_empty() {
            needed.push(Needed { name: key.to_owned(), whole: true });
        }
        return Ok(Found::Missing(needed));
    }
    question.show();
    Ok(Found::Answer(match form::fill_in(schema, given)? {
        Decision::Accept(content) => ElicitResult::accept(content),
        Decision::Refuse(action) => refusal(action),
    }))
}

fn answer_url(question: &Question<'_>, url: &str, scripted: &Scripted) -> Result<Found, Failure> {
    if let Some(action @ (Action::Decline | Action::Cancel)) = scripted.action {
        return Ok(Found::Answer(refusal(action)));
    }
    if scripted.action.is_none() && !console::has_terminal() {
        return Ok(Found::Missing(vec![Needed { name: question.key.to_owned(), whole: true }]));
    }
    question.show();
    let agreed = scripted.action == Some(Action::Accept);
    Ok(Found::Answer(match url::consent(question.key, url, agreed)? {
        Decision::Accept(_) => ElicitResult::consent(),
        Decision::Refuse(action) => refusal(action),
    }))
}

fn refusal(action: Action) -> ElicitResult {
    if action == Action::Decline { ElicitResult::decline() } else { ElicitResult::cancel() }
}

/// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its capabilities.
fn undeclared(pending: &PendingCall, key: &str, ask: &InputRequest) -> Failure {
    Failure::not_supported(&format!("{}: `{}`", pending.server(), ask.method()), key)
}
