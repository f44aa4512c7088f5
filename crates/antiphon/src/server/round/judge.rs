//! Which answers count, and which questions are asked again.

use super::{Answered, Asked, Payload, journal::Journal};
use crate::server::{Limits, Response, refusal::Refusal};
use antiphon_wire::{Action, AskKind, ElicitRequest, InputRequest, InputRequests, InputResponses};
use serde_json::value::RawValue;

/// What the answers of a leg came to.
#[derive(Debug)]
pub(crate) enum Judged {
    /// Every question has an answer: the handler runs.
    Ready { answered: Vec<Answered>, state: Option<String>, journal: Journal },
    /// Some have none that counts: they alone are asked again, the other answers are kept.
    AskAgain { payload: Payload, requests: InputRequests },
}

/// Checks the answers against the questions this state asked. Answers that nobody asked for are ignored.
///
/// > If additional, unexpected parameters are provided in the `InputResponses` object, the server **SHOULD** ignore
/// > any information it does not recognize or need.
///
/// # Errors
/// If a question was asked as often as allowed.
pub(crate) fn judge(
    payload: Payload,
    responses: Option<&InputResponses>,
    limits: &Limits,
) -> Result<Judged, Refusal> {
    let mut payload = payload;
    let mut asked = std::mem::take(&mut payload.asked);
    let mut read_all = Vec::with_capacity(asked.len());
    for entry in &asked {
        let question = question_of(entry)?;
        let sent = responses.and_then(|responses| responses.get(&entry.key)).map(RawValue::get);
        let response = match (entry.answer.as_deref(), sent) {
            // Not measured again: defaults that were filled in may have made it longer than what was sent.
            (Some(kept), _) => read(&question, kept).map_err(Fault::Wrong),
            (None, Some(text)) => read_short(&question, text, limits).map_err(Fault::Wrong),
            (None, None) => Err(Fault::Missing),
        };
        read_all.push((question, response));
    }
    if read_all.iter().all(|(_, response)| response.is_ok()) {
        let answered = asked.into_iter().zip(read_all).filter_map(|(entry, (_, response))| {
            Some(Answered { key: entry.key, question: entry.question, response: response.ok()? })
        });
        return Ok(Judged::Ready {
            answered: answered.collect(),
            state: payload.state,
            journal: payload.journal,
        });
    }
    let mut requests = InputRequests::new();
    let mut room = room_for_answers(&asked, payload.state.as_deref(), limits);
    for (entry, (question, response)) in asked.iter_mut().zip(read_all) {
        if let Err(fault) =
            response.and_then(|response| keep(entry, &response, &mut room).map_err(Fault::Wrong))
        {
            let again = ask_again(entry, question, fault, limits)?;
            // Keys were unique when the round was sealed.
            let _ = requests.insert(entry.key.clone(), again);
        }
    }
    Ok(Judged::AskAgain { payload: Payload { asked, ..payload }, requests })
}

/// What one answer came to that came by itself.
pub(crate) enum JudgedOne {
    Counts(Answered),
    /// It does not: the question goes out again, with the reason.
    AskAgain(Asked, InputRequest),
}

/// Checks one answer to a question that waits here, beside others.
///
/// # Errors
/// If the question was asked as often as allowed.
pub(crate) fn judge_one(mut asked: Asked, text: &str, limits: &Limits) -> Result<JudgedOne, Refusal> {
    let question = question_of(&asked)?;
    match read_short(&question, text, limits) {
        Ok(response) => {
            Ok(JudgedOne::Counts(Answered { key: asked.key, question: asked.question, response }))
        }
        Err(cause) => {
            let again = ask_again(&mut asked, question, Fault::Wrong(cause), limits)?;
            Ok(JudgedOne::AskAgain(asked, again))
        }
    }
}

fn question_of(asked: &Asked) -> Result<InputRequest, Refusal> {
    // We wrote it, and the seal held.
    serde_json::from_str(&asked.question).map_err(|_| {
        tracing::error!(key = asked.key, "a question that was asked cannot be read");
        Refusal::Internal
    })
}

fn read_short(question: &InputRequest, text: &str, limits: &Limits) -> Result<Response, String> {
    short_enough(question, text, limits).and_then(|()| read(question, text))
}

/// Why a question is asked again.
enum Fault {
    /// > If the client fails to send all the information requested in a previous `InputRequests` [...] the
    /// > server **SHOULD** respond with a new `InputRequiredResult` requesting the missing information again, rather
    /// > than returning an error.
    Missing,
    /// In words for the person: fields and rules, never values.
    Wrong(String),
}

/// What a person is told whose answer finds no room beside what is kept: it has so many bytes.
pub(super) fn too_long(room: usize) -> String {
    format!("The answers together are too long: this one may have {room} bytes.")
}

/// What a person is told of an answer of another form than the question's.
pub(super) const UNREADABLE: &str = "The answer could not be read.";

pub(super) fn short_enough(question: &InputRequest, text: &str, limits: &Limits) -> Result<(), String> {
    let most = match question.kind() {
        AskKind::Form | AskKind::Url => limits.form_answer,
        _ => limits.sampling_answer,
    };
    if text.len() > most { Err(format!("The answer must have at most {most} bytes.")) } else { Ok(()) }
}

/// Reads one answer as the kind of ask it answers, defaults filled in.
///
/// # Errors
/// What is wrong with it, in words for the person: fields and rules, never values.
pub(crate) fn read(question: &InputRequest, text: &str) -> Result<Response, String> {
    let unreadable = |_| UNREADABLE.to_owned();
    match question {
        InputRequest::Elicit(elicit) => {
            let mut result: antiphon_wire::ElicitResult = serde_json::from_str(text).map_err(unreadable)?;
            result.content = match (elicit, result.action) {
                (ElicitRequest::Form { requested_schema, .. }, Action::Accept) => {
                    let content = result.content.take().unwrap_or_default();
                    // > Servers **SHOULD** validate received data matches the requested schema
                    Some(requested_schema.check(&content).map_err(|faults| in_words(&faults))?)
                }
                _ => None,
            };
            Ok(Response::Elicit(result))
        }
        InputRequest::CreateMessage(_) => {
            serde_json::from_str(text).map(Response::Sampling).map_err(unreadable)
        }
        InputRequest::ListRoots { .. } => serde_json::from_str(text).map(Response::Roots).map_err(unreadable),
        // A kind of ask that this server cannot have sent.
        _ => Err(UNREADABLE.to_owned()),
    }
}

/// Records an answer in case others are asked again.
fn keep(entry: &mut Asked, response: &Response, room: &mut usize) -> Result<(), String> {
    if entry.answer.is_some() {
        return Ok(());
    }
    let text = written(response)?;
    match room.checked_sub(text.len()) {
        Some(rest) => *room = rest,
        None => return Err(too_long(*room)),
    }
    entry.answer = Some(text);
    Ok(())
}

/// An answer as it is recorded.
pub(super) fn written(response: &Response) -> Result<String, String> {
    let text = match response {
        Response::Elicit(result) => serde_json::to_string(result),
        Response::Sampling(result) => serde_json::to_string(result),
        Response::Roots(result) => serde_json::to_string(result),
    };
    text.map_err(|_| UNREADABLE.to_owned())
}

/// How many bytes of answers the state can take in besides what it holds.
fn room_for_answers(asked: &[Asked], state: Option<&str>, limits: &Limits) -> usize {
    let per_entry = 32;
    let held: usize = asked
        .iter()
        .map(|entry| {
            entry.key.len() + entry.question.len() + entry.answer.as_ref().map_or(0, String::len) + per_entry
        })
        .sum();
    limits.state.saturating_sub(held + state.map_or(0, str::len) + per_entry)
}

/// The question once more.
fn ask_again(
    entry: &mut Asked,
    question: InputRequest,
    fault: Fault,
    limits: &Limits,
) -> Result<InputRequest, Refusal> {
    Ok(match (question, fault) {
        // A client may answer question by question: only the bound on legs ends that.
        (question, Fault::Missing) => question,
        (_, Fault::Wrong(cause)) if entry.times >= limits.times_asked => {
            let text = format!(
                "`{}` was asked {} times without an answer that fits. {cause}",
                entry.key, entry.times
            );
            return Err(Refusal::Limit { name: "times_asked", text });
        }
        (question, Fault::Wrong(cause)) => {
            entry.times += 1;
            entry.answer = None;
            match question {
                InputRequest::Elicit(elicit) => {
                    let message = format!("{}\n\n{cause}", elicit.message());
                    InputRequest::Elicit(elicit.with_message(message))
                }
                other => other,
            }
        }
    })
}

fn in_words(faults: &[antiphon_wire::FieldFault]) -> String {
    let rules: Vec<String> = faults.iter().take(8).map(ToString::to_string).collect();
    format!("{}.", rules.join("; "))
}
