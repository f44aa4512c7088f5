//! `ask_the_model`: questions of every kind, to the model and to the person, in one round.
//!
//! Sampling and roots are deprecated in 2026-07-28: call a model provider instead, and take directories as arguments.

use antiphon::{Form, Result, server::Ctx, tool, wire::SamplingMessage};
use serde::Deserialize;

/// What the person fills in.
#[derive(Deserialize, Form)]
struct Reader {
    reader: String,
}

/// Asks the client's model a question, while the person says who will read the answer.
#[tool]
pub(super) async fn ask_the_model(
    ctx: &Ctx,
    /// What the model is asked.
    question: String,
) -> Result<String> {
    // None of them can go on without its answer: all of them leave together.
    let (answer, roots, (), reader) = tokio::try_join!(
        ctx.sample([SamplingMessage::user(question)], 200).system_prompt("Answer in one sentence."),
        ctx.roots(),
        ctx.elicit_url("Please read the terms of use.", |_| "https://example.com/terms".into()).key("terms"),
        ctx.elicit::<Reader>("Who will read the answer?"),
    )?;
    let text = answer.content.first_text().unwrap_or("(no text)");
    let places: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(format!("For {}, who works in {}: {text}", reader.reader, places.join(" and ")))
}
