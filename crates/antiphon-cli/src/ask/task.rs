//! Answers the open questions of a task, without waiting for its end.

use super::{AnswerResult, MissingAnswer, Question, answer_form, answer_url, missing};
use crate::{answer_flags::AnswerFlags, failure::Failure, sanitize};
use antiphon::{
    client::ClientTask,
    wire::{ElicitRequest, InputRequest, InputResponses},
};
use serde::Serialize;

/// The answers to the questions of a task.
pub(crate) struct TaskAnswers {
    pub(crate) answers: InputResponses,
    /// The text about the questions that have no answer.
    pub(crate) missing: Option<String>,
}

/// Returns the available answers to the open questions.
pub(crate) fn answer_task(task: &ClientTask, flags: &AnswerFlags) -> Result<TaskAnswers, Failure> {
    let keys: Vec<&str> = task.questions().map(|(key, _)| key).collect();
    let header = format!("{} asks, for a task:", sanitize::line(&task.handle().server().to_string()));
    let (mut answers, mut open) = (InputResponses::new(), Vec::new());
    for (key, ask) in task.questions() {
        let question = |message| Question { key, header: &header, message };
        let found = match ask {
            InputRequest::Elicit(ElicitRequest::Form { message, requested_schema: schema }) => {
                answer_form(&question(message), schema, flags.to(key, &keys, Some(schema))?)?
            }
            InputRequest::Elicit(ElicitRequest::Url { message, url }) => {
                answer_url(&question(message), url, &flags.to(key, &keys, None)?)?
            }
            other => {
                match flags.client_answer(other) {
                    Some(answer) => insert(&mut answers, key, &answer)?,
                    None => open.push(MissingAnswer { name: key.to_owned(), whole: true }),
                }
                continue;
            }
        };
        match found {
            AnswerResult::Answer(answer) => insert(&mut answers, key, &answer)?,
            AnswerResult::Missing(mut names) => open.append(&mut names),
        }
    }
    Ok(TaskAnswers { answers, missing: (!open.is_empty()).then(|| missing(&open)) })
}

fn insert(answers: &mut InputResponses, key: &str, answer: &impl Serialize) -> Result<(), Failure> {
    answers.insert(key, answer).map_err(|fault| Failure::usage(format!("the answer for {key}: {fault}")))
}

/// Returns the text of a question, in one line.
pub(crate) fn summary(ask: &InputRequest) -> String {
    match ask {
        InputRequest::Elicit(elicit) => sanitize::line(elicit.message()),
        other => sanitize::line(other.method()),
    }
}
