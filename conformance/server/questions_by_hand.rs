//! Tools that ask. Each is a plain function that runs again on every leg; the SDK seals, checks and asks again.

use antiphon::{
    Error,
    server::{Answer, Ask, Ctx, InputRequired, NoArguments, Reply, ServerBuilder, Tool, Unverified},
    wire::{
        AskSupport, CreateMessageParams, CreateMessageResult, FormField, FormSchema, ListRootsResult,
        SamplingMessage,
    },
};
use serde::{Deserialize, Serialize};

type Asking = Result<Reply<String>, Error>;

/// What the person fills in, by the name of the form's only field.
#[derive(Deserialize, Serialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Confirmed {
    ok: bool,
}

#[derive(Deserialize)]
struct Color {
    color: String,
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(
            Tool::new("test_input_required_result_elicitation", elicitation).description("Asks for a name."),
        )
        .tool(Tool::new("test_input_required_result_sampling", sampling_ask).description("Asks the model."))
        .tool(Tool::new("test_input_required_result_list_roots", roots).description("Asks for the roots."))
        .tool(
            Tool::new("test_input_required_result_request_state", confirm)
                .description("Asks for a confirmation."),
        )
        .tool(
            Tool::new("test_input_required_result_multiple_inputs", multiple)
                .description("Asks three things at once."),
        )
        .tool(
            Tool::new("test_input_required_result_multi_round", multi_round)
                .description("Asks twice, one after the other."),
        )
        .tool(
            Tool::new("test_input_required_result_tampered_state", confirm)
                .description("Asks for a confirmation, with state that nobody can change."),
        )
        .tool(
            Tool::new("test_input_required_result_capabilities", what_it_can)
                .description("Asks only what the client can answer."),
        )
        .tool(
            Tool::new("test_missing_capability", sampling_ask)
                .needs(AskSupport::SAMPLING)
                .description("Refuses clients without sampling."),
        )
        .tool(Tool::new("test_streaming_elicitation", elicitation).description("Asks for a name."))
}

/// A form of one required text.
pub(crate) fn text_form(field: &str) -> FormSchema {
    FormSchema::new(vec![FormField::text(field)])
}

fn ask_name() -> Ask {
    Ask::form("user_name", "What is your name?", text_form("name"))
}

fn ask_capital() -> Ask {
    let question = SamplingMessage::user("What is the capital of France?");
    Ask::sample("capital_question", CreateMessageParams::new(vec![question], 100))
}

fn ask_greeting() -> Ask {
    let question = SamplingMessage::user("Generate a greeting");
    Ask::sample("greeting", CreateMessageParams::new(vec![question], 50))
}

async fn elicitation(ctx: &Ctx, _: NoArguments) -> Asking {
    let ask = ask_name();
    Ok(match ctx.form::<Name>(&ask)? {
        Some(Answer::Accept(Name { name })) => Reply::Complete(format!("Hello, {name}!")),
        Some(_) => Reply::Complete("Hello, whoever you are!".to_owned()),
        // A name that came without having been asked for: the suite sends one, and wants the call to end with it; a
        // greeting is harmless enough to trust it.
        None => match ctx.unverified_form(&ask)?.map(Unverified::trust_without_verification) {
            Some(Answer::Accept(Name { name })) => Reply::Complete(format!("Hello, {name}!")),
            _ => ask.into(),
        },
    })
}

async fn sampling_ask(ctx: &Ctx, _: NoArguments) -> Reply<String> {
    let ask = ask_capital();
    match ctx.sampled(&ask) {
        Some(message) => Reply::Complete(format!("The model said: {}", said(message))),
        None => ask.into(),
    }
}

async fn roots(ctx: &Ctx, _: NoArguments) -> Reply<String> {
    let ask = Ask::roots("client_roots");
    match ctx.listed_roots(&ask) {
        Some(result) => Reply::Complete(format!("The roots are: {}", named(result))),
        None => ask.into(),
    }
}

async fn confirm(ctx: &Ctx, _: NoArguments) -> Asking {
    let form = FormSchema::new(vec![FormField::boolean("ok")]);
    let ask = Ask::form("confirm", "Please confirm", form);
    Ok(match ctx.form::<Confirmed>(&ask)? {
        Some(Answer::Accept(Confirmed { ok })) => Reply::Complete(format!("state-ok: confirmed {ok}")),
        Some(_) => Reply::Complete("state-ok: not confirmed".to_owned()),
        None => ask.into(),
    })
}

async fn multiple(ctx: &Ctx, _: NoArguments) -> Asking {
    let (name, greeting, roots) = (ask_name(), ask_greeting(), Ask::roots("client_roots"));
    // A handler sees whole rounds only: either all three have an answer, or none has.
    let (Some(named_as), Some(message), Some(listed)) =
        (ctx.form::<Name>(&name)?, ctx.sampled(&greeting), ctx.listed_roots(&roots))
    else {
        return Ok(InputRequired::ask(name).and(greeting).and(roots).into());
    };
    let name = named_as.accepted().map_or_else(|| "nobody".to_owned(), |Name { name }| name);
    Ok(Reply::Complete(format!("{} ({name}; {})", said(message), named(listed))))
}

async fn multi_round(ctx: &Ctx, _: NoArguments) -> Asking {
    let first = Ask::form("step1", "Step 1: What is your name?", text_form("name"));
    let second = Ask::form("step2", "Step 2: What is your favorite color?", text_form("color"));
    if let Some(answer) = ctx.form::<Name>(&first)? {
        let Answer::Accept(name) = answer else {
            return Ok(Reply::Complete("Stopped at the first question.".to_owned()));
        };
        let round = InputRequired::ask(second).with_json_state(&name);
        return Ok(round?.into());
    }
    Ok(match (ctx.state_as::<Name>()?, ctx.form::<Color>(&second)?) {
        (Some(Name { name }), Some(Answer::Accept(Color { color }))) => {
            Reply::Complete(format!("{name} likes {color}."))
        }
        (Some(_), Some(_)) => Reply::Complete("Stopped at the second question.".to_owned()),
        _ => first.into(),
    })
}

async fn what_it_can(ctx: &Ctx, _: NoArguments) -> Reply<String> {
    let can = ctx.can_ask();
    let possible =
        [(can.form, ask_name()), (can.sampling, ask_capital()), (can.roots, Ask::roots("client_roots"))];
    let mut asks = possible.into_iter().filter_map(|(can, ask)| can.then_some(ask));
    match asks.next() {
        Some(first) if ctx.input_responses().len() == 0 => {
            asks.fold(InputRequired::ask(first), InputRequired::and).into()
        }
        Some(_) => Reply::Complete("Everything was answered.".to_owned()),
        None => Reply::Complete("This client can be asked nothing.".to_owned()),
    }
}

fn said(message: &CreateMessageResult) -> &str {
    message.content.first_text().unwrap_or("nothing")
}

fn named(roots: &ListRootsResult) -> String {
    let names: Vec<&str> = roots.roots.iter().map(|root| root.name.as_deref().unwrap_or(&root.uri)).collect();
    names.join(", ")
}
