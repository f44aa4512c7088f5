//! Questions of a session: asked while the call is under way, and answered as those between the legs are.

use crate::{
    answers::Answers,
    ask::{self, Unanswered},
};
use antiphon::client::{CallbackError, ClientBuilder};

/// Answers what a legacy server asks. One question after another: there is one terminal.
pub(crate) fn attach(builder: ClientBuilder, answers: &Answers) -> ClientBuilder {
    let asked = answers.clone();
    let builder = builder.one_at_a_time().on_elicit(move |ask| {
        let answers = asked.clone();
        async move {
            // A prompt waits for a person; other tasks go on elsewhere.
            let answered = tokio::task::block_in_place(|| ask::answer_live(&ask, &answers));
            answered.map_err(|unanswered| match unanswered {
                Unanswered::Missing(text) => CallbackError::new(text),
                Unanswered::Failed(failure) => CallbackError::new(failure.message),
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
