//! Answers the questions of one round, from the command line or at the terminal.
//!
//! > Clients **MUST** provide clear indication of which server is requesting information
//! >
//! > Respect user privacy and provide clear decline and cancel options

mod form;
mod prompt;
mod task;
#[cfg(test)]
mod tests;

#[cfg(feature = "oauth")]
pub(crate) use prompt::agrees;
pub(crate) use task::{answer_task, attach, summary};

use crate::{
    answer_flags::{AnswerFlags, FlagAnswer},
    console,
    failure::Failure,
    flag_text::FlagAction,
};
use antiphon::{
    client::{
        PendingCall,
        asks::{ElicitAsk, consent::form_warnings},
    },
    wire::{ElicitRequest, ElicitResult, InputRequest, forms::FormSchema},
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

/// Sets every missing answer. Sets the available answers even if others are missing. An answer of a stored call is replaced if the
/// command line names its key.
pub(crate) fn answer_round(pending: &mut PendingCall, answers: &AnswerFlags) -> Result<(), RoundError> {
    let _turn = answers.turn();
    let asks = pending.asks().clone();
    answers.begin_round(&asks);
    let header = format!(
        "{} asks, for {}:",
        console::line(&pending.server().to_string()),
        console::line(&pending.call().to_string())
    );
    // In a session, the key is an id that the server made for this call.
    let (open, has_keys) = (pending.missing(), pending.has_state());
    let is_open = |key: &str| open.iter().any(|name| name == key) || answers.names(key);
    let mut missing = Vec::new();
    for (key, ask) in asks.iter().filter(|(key, _)| is_open(key)) {
        let Some(question) = Question::of(key, has_keys, &header, ask) else {
            let Some(answer) = answers.client_answer(ask) else {
                return Err(undeclared(pending, key, ask).into());
            };
            pending.answer(key, &answer).map_err(|error| Failure::usage(error.to_string()))?;
            continue;
        };
        match answer(&question, answers)? {
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
        missing_answer.iter().map(|it| format!("--answer {}={}", it.name, it.example)).collect();
    let names: Vec<&str> = missing_answer.iter().map(|it| it.name.as_str()).collect();
    let why = if console::has_terminal() { "" } else { " and no terminal to ask" };
    console::line(&format!("no answer for {}{why}: pass {}", names.join(", "), examples.join(" ")))
}

/// Returns the answer to a question that comes during the call.
pub(crate) fn answer_session_question(
    ask: &ElicitAsk,
    answers: &AnswerFlags,
) -> Result<ElicitResult, RoundError> {
    let _turn = answers.turn();
    let context = ask.context();
    let server = console::line(&context.server.to_string());
    let header = match context.target.as_str() {
        "" => format!("{server} asks:"),
        target => format!("{server} asks, for {} `{}`:", context.method, console::line(target)),
    };
    let content = match ask {
        ElicitAsk::Form(form) => Content::Form(&form.schema),
        ElicitAsk::Url(url) => Content::Page(&url.url),
        _ => return Err(Failure::not_supported("this kind of question", &context.key).into()),
    };
    // In a session, the key is the id of a request.
    let (key, has_keys) = (context.key.as_str(), answers.is_keyed());
    answer_one(&Question { key, has_keys, header: &header, message: ask.message(), content }, answers)
}

/// Returns the answer to a question that is not part of a round.
fn answer_one(question: &Question<'_>, answers: &AnswerFlags) -> Result<ElicitResult, RoundError> {
    match answer(question, answers)? {
        AnswerResult::Answer(answer) => Ok(answer),
        AnswerResult::Missing(names) => Err(RoundError::Missing(missing(&names))),
    }
}

/// The length of a message after which the name of the server is printed again.
const LONG: usize = 1000;
const LONG_LINES: usize = 12;

/// A question of the person, and the name of the server that asks.
struct Question<'a> {
    key: &'a str,
    /// `true` if the author of the server chose the key; `false` if nobody knows it before the call.
    has_keys: bool,
    header: &'a str,
    message: &'a str,
    content: Content<'a>,
}

enum Content<'a> {
    Form(&'a FormSchema),
    Page(&'a str),
    /// An elicitation that this program does not know or cannot read. A person can only refuse it.
    Unknown,
}

impl<'a> Question<'a> {
    /// Returns the question of an ask; none if the ask is not for the person.
    fn of(key: &'a str, has_keys: bool, header: &'a str, ask: &'a InputRequest) -> Option<Self> {
        let (message, content) = match ask {
            InputRequest::Elicit(ElicitRequest::Form { message, requested_schema }) => {
                (message.as_str(), Content::Form(requested_schema))
            }
            InputRequest::Elicit(ElicitRequest::Url { message, url }) => {
                (message.as_str(), Content::Page(url))
            }
            InputRequest::Unknown(unknown) if unknown.is_elicitation() => {
                (unknown.unreadable().unwrap_or("a question of an unknown kind"), Content::Unknown)
            }
            _ => return None,
        };
        Some(Self { key, has_keys, header, message, content })
    }

    fn show(&self) {
        console::note("");
        console::note_with_strong("", self.header, "");
        console::note(&console::indented(self.message));
        // The first line may have scrolled out of view.
        if self.message.len() > LONG || self.message.lines().count() > LONG_LINES {
            console::note_with_strong("", self.header, "");
        }
    }
}

enum AnswerResult {
    Answer(ElicitResult),
    Missing(Vec<MissingAnswer>),
}

/// A missing answer, and an example of its value.
struct MissingAnswer {
    name: String,
    example: String,
}

/// Answers one question from the command line or at the terminal.
fn answer(question: &Question<'_>, answers: &AnswerFlags) -> Result<AnswerResult, Failure> {
    match question.content {
        Content::Form(schema) => {
            let number = answers.number(None);
            let given = answers.take(number, question.key, Some(schema))?;
            let name = of(number, question.key, question.has_keys);
            answer_form(question, &name, schema, given, answers.has_terminal())
        }
        Content::Page(page) => {
            let number = answers.number(Some(page));
            if answers.has_agreed(page) {
                return Ok(AnswerResult::Answer(ElicitResult::consent()));
            }
            let given = answers.take(number, question.key, None)?;
            let name = of(number, question.key, question.has_keys);
            answer_page(question, &name, page, given, answers)
        }
        Content::Unknown => {
            let number = answers.number(None);
            let given = answers.take(number, question.key, None)?;
            if let Some(refusal) = refusal(given.action.as_ref()) {
                return Ok(AnswerResult::Answer(refusal));
            }
            question.show();
            console::note("  This program cannot ask this question. It can only be declined or cancelled.");
            let name = of(number, question.key, question.has_keys);
            Ok(AnswerResult::Missing(vec![MissingAnswer { name, example: "decline".to_owned() }]))
        }
    }
}

fn answer_form(
    question: &Question<'_>,
    name: &str,
    schema: &FormSchema,
    FlagAnswer { action, fields: given }: FlagAnswer,
    has_terminal: bool,
) -> Result<AnswerResult, Failure> {
    if let Some(refusal) = refusal(action.as_ref()) {
        return Ok(AnswerResult::Answer(refusal));
    }
    let open: Vec<_> = schema
        .fields()
        .iter()
        .filter(|field| field.required && field.default_value().is_none() && !given.contains_key(&field.name))
        .collect();
    // If the command line has all required answers, the person is not asked, and optional fields stay empty.
    let is_scripted = open.is_empty() && (action == Some(FlagAction::Accept) || !given.is_empty());
    if is_scripted {
        return Ok(AnswerResult::Answer(ElicitResult::accept(given)));
    }
    if !has_terminal {
        let field = |field: &str| MissingAnswer { name: format!("{name}.{field}"), example: "..".to_owned() };
        let mut missing: Vec<MissingAnswer> = open.iter().map(|it| field(&it.name)).collect();
        if missing.is_empty() {
            missing.push(MissingAnswer { name: name.to_owned(), example: "accept".to_owned() });
        }
        return Ok(AnswerResult::Missing(missing));
    }
    question.show();
    for warning in form_warnings(question.message, schema) {
        console::note(&format!("  Warning: {}", console::line(&warning.to_string())));
    }
    Ok(AnswerResult::Answer(form::fill_in(schema, given)?))
}

/// Answers a question of a page. The command line agrees to a page with the name of its host only: the person has not seen the
/// page, and the server chooses it.
fn answer_page(
    question: &Question<'_>,
    name: &str,
    page: &str,
    given: FlagAnswer,
    answers: &AnswerFlags,
) -> Result<AnswerResult, Failure> {
    if let Some(refusal) = refusal(given.action.as_ref()) {
        return Ok(AnswerResult::Answer(refusal));
    }
    let shown = prompt::read(question.key, page)?;
    question.show();
    prompt::show(&shown);
    match given.action {
        Some(FlagAction::AcceptAt(host)) if host == shown.host => {
            console::note("  You agreed on the command line: open it in your browser.");
            answers.agree(page);
            return Ok(AnswerResult::Answer(ElicitResult::consent()));
        }
        Some(FlagAction::AcceptAt(host)) => {
            console::note(&format!("  You agreed on the command line to {host}, which is another host."));
        }
        Some(_) => console::note("  `accept` without a host agrees to no page."),
        None => {}
    }
    if !answers.has_terminal() {
        let example = format!("accept@{}", shown.host);
        return Ok(AnswerResult::Missing(vec![MissingAnswer { name: name.to_owned(), example }]));
    }
    Ok(AnswerResult::Answer(prompt::ask(&shown)?))
}

fn refusal(action: Option<&FlagAction>) -> Option<ElicitResult> {
    match action? {
        FlagAction::Decline => Some(ElicitResult::decline()),
        FlagAction::Cancel => Some(ElicitResult::cancel()),
        FlagAction::Accept | FlagAction::AcceptAt(_) => None,
    }
}

/// Returns the failure of a question that was not declared, or that cannot be read.
///
/// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its capabilities.
fn undeclared(pending: &PendingCall, key: &str, ask: &InputRequest) -> Failure {
    let unreadable = match ask {
        InputRequest::Unknown(unknown) => unknown.unreadable(),
        _ => None,
    };
    match unreadable {
        Some(reason) => Failure::protocol(
            "not_supported",
            format!("{}: the question `{key}` cannot be read: {reason}", pending.server()),
        ),
        None => Failure::not_supported(&format!("{}: `{}`", pending.server(), ask.method()), key),
    }
}

/// Returns the key, or the number if nobody can know the key before the call.
fn of(number: u32, key: &str, is_stable: bool) -> String {
    if is_stable && !is_random(key) { key.to_owned() } else { number.to_string() }
}

/// Returns `true` if the key looks like one that the server made for this call alone, such as a UUID.
fn is_random(key: &str) -> bool {
    let (mut digits, mut most_digits, mut changes) = (0, 0, 0);
    let mut before = None;
    for byte in key.bytes() {
        let is_digit = byte.is_ascii_alphanumeric().then(|| byte.is_ascii_digit());
        digits = if is_digit == Some(true) { digits + 1 } else { 0 };
        most_digits = most_digits.max(digits);
        changes += usize::from(before.zip(is_digit).is_some_and(|(before, now)| before != now));
        before = is_digit;
    }
    // A number alone is never a key on the command line.
    changes >= 4 || most_digits >= 6 || most_digits == key.len()
}

#[cfg(test)]
mod name_tests {
    use super::*;

    #[test]
    fn keys_that_nobody_can_know_are_replaced_by_numbers() {
        for (key, is_known) in [
            ("region", true),
            ("duplicate_of", true),
            ("__main__:confirm_delete", true),
            ("__main__:x.<locals>.y#1", true),
            ("deposit#12345", true),
            ("step2/q3", true),
            ("confirm~2", true),
            ("RezM57SLv2hYVghF3oRKwMvE_prv5wcUcWD8UyZ41fI:27ed770836dec846", false),
            ("550e8400-e29b-41d4-a716-446655440000", false),
            ("ask-1732699034123", false),
            ("7f3a90bc", false),
            ("2", false),
            ("", false),
        ] {
            assert_eq!(of(7, key, true), if is_known { key } else { "7" }, "{key}");
            assert_eq!(of(7, key, false), "7", "{key}");
        }
    }
}
