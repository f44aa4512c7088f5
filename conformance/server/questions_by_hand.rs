//! Tools that ask by hand. Each is a plain function that runs again on every leg. The SDK seals the state, validates
//! the answers and repeats questions.

use antiphon::{
    Error,
    server::{
        Answer, Ask, Ctx, NoArguments, Reply, ServerBuilder, Tool,
        asks::{InputRequired, Unverified},
    },
    wire::{
        AskSupport,
        forms::{FormField, FormSchema},
        sampling::{CreateMessageParams, CreateMessageResult, ListRootsResult, SamplingMessage},
    },
};
use serde::{Deserialize, Serialize};

type AskResult = Result<Reply<String>, Error>;

/// The form with one field, the name.
#[derive(Deserialize, Serialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Confirmation {
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
                .description("Asks three questions in one round."),
        )
        .tool(
            Tool::new("test_input_required_result_multi_round", multi_round)
                .description("Asks two questions, one after the other."),
        )
        .tool(
            Tool::new("test_input_required_result_tampered_state", confirm)
                .description("Asks for a confirmation, with sealed state."),
        )
        .tool(
            Tool::new("test_input_required_result_capabilities", supported_questions)
                .description("Asks only questions that the client supports."),
        )
        .tool(
            Tool::new("test_missing_capability", sampling_ask)
                .needs(AskSupport::SAMPLING)
                .description("Rejects clients without sampling."),
        )
        .tool(Tool::new("test_streaming_elicitation", elicitation).description("Asks for a name."))
}

/// Returns a form with one required text.
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

async fn elicitation(ctx: &Ctx, _: NoArguments) -> AskResult {
    let ask = ask_name();
    Ok(match ctx.by_hand().form::<Name>(&ask)? {
        Some(Answer::Accept(Name { name })) => Reply::Complete(format!("Hello, {name}!")),
        Some(_) => Reply::Complete("Hello, whoever you are!".to_owned()),
        // The suite sends a name without a question, and requires the call to use it. A greeting is harmless, so the
        // tool trusts the name.
        None => match ctx.by_hand().unverified_form(&ask)?.map(Unverified::trust_without_verification) {
            Some(Answer::Accept(Name { name })) => Reply::Complete(format!("Hello, {name}!")),
            _ => ask.into(),
        },
    })
}

async fn sampling_ask(ctx: &Ctx, _: NoArguments) -> Reply<String> {
    let ask = ask_capital();
    match ctx.by_hand().sampled(&ask) {
        Some(message) => Reply::Complete(format!("The model said: {}", model_text(message))),
        None => ask.into(),
    }
}

async fn roots(ctx: &Ctx, _: NoArguments) -> Reply<String> {
    let ask = Ask::roots("client_roots");
    match ctx.by_hand().listed_roots(&ask) {
        Some(result) => Reply::Complete(format!("The roots are: {}", root_names(result))),
        None => ask.into(),
    }
}

async fn confirm(ctx: &Ctx, _: NoArguments) -> AskResult {
    let form = FormSchema::new(vec![FormField::boolean("ok")]);
    let ask = Ask::form("confirm", "Please confirm", form);
    Ok(match ctx.by_hand().form::<Confirmation>(&ask)? {
        Some(Answer::Accept(Confirmation { ok })) => Reply::Complete(format!("state-ok: confirmed {ok}")),
        Some(_) => Reply::Complete("state-ok: not confirmed".to_owned()),
        None => ask.into(),
    })
}

async fn multiple(ctx: &Ctx, _: NoArguments) -> AskResult {
    let (name, greeting, roots) = (ask_name(), ask_greeting(), Ask::roots("client_roots"));
    // A handler sees complete rounds only: all three questions have an answer, or none has.
    let (Some(named_as), Some(message), Some(listed)) = (
        ctx.by_hand().form::<Name>(&name)?,
        ctx.by_hand().sampled(&greeting),
        ctx.by_hand().listed_roots(&roots),
    ) else {
        return Ok(InputRequired::ask(name).and(greeting).and(roots).into());
    };
    let name = named_as.accepted().map_or_else(|| "no name".to_owned(), |Name { name }| name);
    Ok(Reply::Complete(format!("{} ({name}; {})", model_text(message), root_names(listed))))
}

async fn multi_round(ctx: &Ctx, _: NoArguments) -> AskResult {
    let first = Ask::form("step1", "Step 1: What is your name?", text_form("name"));
    let second = Ask::form("step2", "Step 2: What is your favorite color?", text_form("color"));
    if let Some(answer) = ctx.by_hand().form::<Name>(&first)? {
        let Answer::Accept(name) = answer else {
            return Ok(Reply::Complete("Stopped at the first question.".to_owned()));
        };
        let round = InputRequired::ask(second).with_json_state(&name);
        return Ok(round?.into());
    }
    Ok(match (ctx.by_hand().state_as::<Name>()?, ctx.by_hand().form::<Color>(&second)?) {
        (Some(Name { name }), Some(Answer::Accept(Color { color }))) => {
            Reply::Complete(format!("{name} likes {color}."))
        }
        (Some(_), Some(_)) => Reply::Complete("Stopped at the second question.".to_owned()),
        _ => first.into(),
    })
}

async fn supported_questions(ctx: &Ctx, _: NoArguments) -> Reply<String> {
    let can = ctx.can_ask();
    let possible =
        [(can.form, ask_name()), (can.sampling, ask_capital()), (can.roots, Ask::roots("client_roots"))];
    let mut asks = possible.into_iter().filter_map(|(can, ask)| can.then_some(ask));
    match asks.next() {
        Some(first) if ctx.by_hand().input_responses().len() == 0 => {
            asks.fold(InputRequired::ask(first), InputRequired::and).into()
        }
        Some(_) => Reply::Complete("All questions were answered.".to_owned()),
        None => Reply::Complete("The client supports no questions.".to_owned()),
    }
}

fn model_text(message: &CreateMessageResult) -> &str {
    message.content.first_text().unwrap_or("nothing")
}

fn root_names(roots: &ListRootsResult) -> String {
    let names: Vec<&str> = roots.roots.iter().map(|root| root.name.as_deref().unwrap_or(&root.uri)).collect();
    names.join(", ")
}
