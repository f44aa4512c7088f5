//! Answers the open questions of a task, without waiting for its end.

use super::{AnswerResult, MissingAnswer, Question, answer, missing};
use crate::{answer_flags::AnswerFlags, failure::Failure, sanitize};
use antiphon::{
    client::tasks::ClientTask,
    wire::{InputRequest, InputRequests, InputResponses},
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
    let _turn = flags.turn();
    let mut asks = InputRequests::new();
    for (key, ask) in task.questions() {
        // A question that was read can be written.
        let _ = asks.insert(key, ask.clone());
    }
    flags.begin_round(&asks);
    let header = format!("{} asks, for a task:", sanitize::line(&task.handle().server().to_string()));
    let (mut answers, mut open) = (InputResponses::new(), Vec::new());
    for (key, ask) in task.questions() {
        let Some(question) = Question::of(key, true, &header, ask) else {
            match flags.client_answer(ask) {
                Some(answer) => insert(&mut answers, key, &answer)?,
                None => open.push(MissingAnswer { name: key.to_owned(), example: "accept".to_owned() }),
            }
            continue;
        };
        match answer(&question, flags)? {
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
