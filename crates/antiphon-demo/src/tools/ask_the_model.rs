//! `ask_the_model`: every kind of question in one round: a sample of the client's model, roots, a URL and a form.
//!
//! Sampling and roots are deprecated in 2026-07-28: new tools call a model provider themselves, and take directories as arguments.

use antiphon::{Form, Result, server::Ctx, tool, wire::sampling::SamplingMessage};
use serde::Deserialize;

/// The form for the person.
#[derive(Deserialize, Form)]
struct Reader {
    reader: String,
}

/// Asks the client's model a question, while the person says who will read the answer.
#[tool]
pub(crate) async fn ask_the_model(
    ctx: &Ctx,
    /// The question for the model.
    question: String,
) -> Result<String> {
    // No branch can continue without its answer, so all four questions leave in one round.
    let (answer, roots, (), reader) = tokio::try_join!(
        ctx.sample([SamplingMessage::user(question)], 200).system_prompt("Answer in one sentence."),
        ctx.roots(),
        ctx.elicit_url("Please read the terms of use.", |_| "https://example.com/terms".into()).key("terms"),
        ctx.elicit::<Reader>("Who will read the answer?"),
    )?;
    let text = answer.content.first_text().unwrap_or("(no text)");
    let roots: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(format!("For {}, who works in {}: {text}", reader.reader, roots.join(" and ")))
}
