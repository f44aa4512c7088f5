//! Tools with several questions in one round, several rounds, rounds without questions, and an endless series of
//! rounds.

use crate::single::summary_of;
use antiphon::{
    Result,
    server::{Answer, Ask, Ctx, NoArguments, Reply, Tool, asks::InputRequired},
    wire::forms::{FormField, FormSchema},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Word {
    word: String,
}

fn word(key: &str, message: &str) -> Ask {
    Ask::form(key, message, FormSchema::new(vec![FormField::text("word")]))
}

pub(super) fn gather() -> Tool {
    Tool::new("gather", gathers).description("Asks a form, a URL, the model and the roots in one round.")
}

async fn gathers(ctx: &Ctx, _: NoArguments) -> Result<Reply<String>> {
    let (form, roots) = (word("z:form", "A word, please"), Ask::roots("roots"));
    let page = Ask::url("a.page", "Agree to the terms", "https://example.com/terms");
    let model = summary_of("everything");
    let answers = (ctx.by_hand().form::<Word>(&form)?, ctx.by_hand().url(&page), ctx.by_hand().sampled(&model), ctx.by_hand().listed_roots(&roots));
    let (Some(form_answer), Some(page_answer), Some(message), Some(found)) = answers else {
        return Ok(InputRequired::ask(form).and(page).and(model).and(roots).into());
    };
    let form_answer = match form_answer {
        Answer::Accept(Word { word }) => word,
        Answer::Decline => "declined".into(),
        Answer::Cancel => "cancelled".into(),
    };
    let page_answer = match page_answer {
        Answer::Accept(()) => "agreed",
        Answer::Decline => "declined",
        Answer::Cancel => "cancelled",
    };
    let message = message.content.first_text().unwrap_or("nothing");
    Ok(Reply::Complete(format!("{form_answer}, {page_answer}, {message}, {} roots", found.roots.len())))
}

pub(super) fn ladder() -> Tool {
    Tool::new("ladder", climbs).description("Asks three words, one a round; earlier ones wait in the state.")
}

async fn climbs(ctx: &Ctx, _: NoArguments) -> Result<Reply<String>> {
    let mut words: Vec<String> = ctx.by_hand().state_as()?.unwrap_or_default();
    loop {
        let step = words.len() + 1;
        if step > 3 {
            return Ok(Reply::Complete(words.join(" ")));
        }
        let ask = word(&format!("word{step}"), &format!("Word {step} of 3"));
        match ctx.by_hand().form(&ask)? {
            None => return Ok(InputRequired::ask(ask).with_json_state(&words)?.into()),
            Some(Answer::Accept(Word { word })) => words.push(word),
            Some(_) => return Ok(Reply::Complete(format!("stopped at {step}"))),
        }
    }
}

pub(super) fn shed() -> Tool {
    Tool::new("shed", sheds).description("Ends two legs with state alone, then one with a question.")
}

async fn sheds(ctx: &Ctx, _: NoArguments) -> Result<Reply<String>> {
    let ask = word("last", "A last word");
    Ok(match ctx.by_hand().state() {
        None => InputRequired::state_only("one").into(),
        Some("one") => InputRequired::state_only("one, two").into(),
        Some(state) => match ctx.by_hand().form(&ask)? {
            None => InputRequired::ask(ask).with_state(state).into(),
            Some(Answer::Accept(Word { word })) => Reply::Complete(format!("{state}, {word}")),
            Some(_) => Reply::Complete(format!("{state}, nothing")),
        },
    })
}

pub(super) fn insist() -> Tool {
    Tool::new("insist", insists).description("Asks for ever.")
}

async fn insists(ctx: &Ctx, _: NoArguments) -> Reply<String> {
    let round = ctx.by_hand().state().and_then(|state| state.parse().ok()).unwrap_or(0) + 1;
    InputRequired::ask(word("more", "One more?")).with_state(round.to_string()).into()
}
