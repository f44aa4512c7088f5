//! The questions of a legacy session and of a task, which come during the call. They are answered in the same way as questions
//! between legs.

use crate::{
    answer_flags::AnswerFlags,
    ask::{self, RoundError},
};
use antiphon::client::{CallbackError, ClientBuilder, RoundDecision};

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
