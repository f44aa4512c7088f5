//! The questions of a task and of a legacy session, which come during the call.

use super::{AnswerResult, MissingAnswer, Question, answer, missing};
use crate::{
    answer_flags::AnswerFlags,
    ask::{self, RoundError},
    console,
    failure::Failure,
};
use antiphon::{
    client::{CallbackError, ClientBuilder, RoundDecision, tasks::ClientTask},
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
    let header = format!("{} asks, for a task:", console::line(&task.handle().server().to_string()));
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
        InputRequest::Elicit(elicit) => console::line(elicit.message()),
        other => console::line(other.method()),
    }
}

// The questions of a legacy session and of a task, which come during the call. They are answered in the same way as questions
// between legs.

/// Answers the questions of a legacy server, and of tasks. One question at a time, because there is one terminal.
pub(crate) fn attach(builder: ClientBuilder, answers: &AnswerFlags) -> ClientBuilder {
    let (rounds, asked) = (answers.clone(), answers.clone());
    let builder = builder.one_at_a_time(true).on_round(move |round| {
        rounds.begin_round(&round.asks);
        std::future::ready(RoundDecision::go())
    });
    let builder = builder.on_elicit(move |ask| {
        let answers = asked.clone();
        async move {
            // A prompt blocks this thread until the person answers. Other tasks continue on other threads.
            let answered = tokio::task::block_in_place(|| ask::answer_session_question(&ask, &answers));
            answered.map_err(|unanswered| match unanswered {
                RoundError::Missing(text) => {
                    answers.note_unanswered(&text);
                    CallbackError::new(text)
                }
                RoundError::Failed(failure) => CallbackError::new(failure.message),
            })
        }
    });
    let builder = match answers.sample() {
        Some(message) => builder.on_sample(move |_| std::future::ready(Ok(message.clone()))),
        None => builder,
    };
    match answers.roots() {
        Some(roots) => builder.on_roots(move |_| std::future::ready(Ok(roots.clone()))),
        None => builder,
    }
}
