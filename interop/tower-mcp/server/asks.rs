//! Tools, a prompt and a resource that ask in rounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::HashMap, time::Duration};
use tower_mcp::{
    BoxError, CallToolResult, Error, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    McpRouter, PromptBuilder, ReadResourceResult, RequestContext, RequestOutcome, RequestStateCodec,
    ResourceBuilder, ToolBuilder,
    protocol::{
        CreateMessageParams, ElicitFormParams, ElicitFormSchema, ElicitRequestParams, ElicitUrlParams,
        GetPromptResult, ListRootsParams, SamplingMessage,
    },
};

const STATE_LIFETIME: Duration = Duration::from_secs(3600);
/// The key of this program alone: each test starts its own server.
const STATE_KEY: [u8; 32] = *b"the key of an interop test alone";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NoArguments {}

#[derive(Deserialize, JsonSchema)]
struct Order {
    order: String,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// The state between the two rounds of `ship_order`.
#[derive(Deserialize, Serialize)]
struct Country {
    country: String,
}

type Asked<T> = tower_mcp::Result<RequestOutcome<T>>;

/// A form with these texts, all of them required.
pub(crate) fn form(message: &str, fields: &[&str]) -> InputRequest {
    let empty = ElicitFormSchema::new();
    let schema = fields.iter().fold(empty, |schema, field| schema.string_field(field, None, true));
    let message = message.to_owned();
    let params = ElicitFormParams { mode: None, message, requested_schema: schema, meta: None };
    InputRequest::Elicit(ElicitRequestParams::Form(params))
}

/// One question.
pub(crate) fn only(key: &str, question: InputRequest) -> InputRequests {
    [(key.to_owned(), question)].into()
}

fn answer(answers: &InputResponses, key: &str) -> Value {
    answers.get(key).and_then(|answer| serde_json::to_value(answer).ok()).unwrap_or_default()
}

/// The action of an answer, or "no answer".
pub(crate) fn action(answers: &InputResponses, key: &str) -> String {
    answer(answers, key)["action"].as_str().unwrap_or("no answer").to_owned()
}

/// A text of an accepted form, or the action of another answer.
pub(crate) fn field(answers: &InputResponses, key: &str, name: &str) -> String {
    match answer(answers, key)["content"][name].as_str() {
        Some(text) => text.to_owned(),
        None => action(answers, key),
    }
}

fn ask<T>(requests: InputRequests) -> Asked<T> {
    Ok(RequestOutcome::InputRequired(InputRequiredResult::with_requests(requests)))
}

fn text(text: impl Into<String>) -> Asked<CallToolResult> {
    Ok(RequestOutcome::Complete(CallToolResult::text(text)))
}

pub(crate) fn add(router: McpRouter) -> Result<McpRouter, BoxError> {
    let codec = RequestStateCodec::new(STATE_KEY, STATE_LIFETIME)?;
    Ok(router
        .tool(
            ToolBuilder::new("echo")
                .handler(async |Text { text }: Text| Ok(CallToolResult::text(text)))
                .build(),
        )
        .tool(
            ToolBuilder::new("ship_order")
                .mrtr_handler(move |context: RequestContext, order: Order| {
                    let codec = codec.clone();
                    async move { ship_order(&codec, &context, &order.order) }
                })
                .build(),
        )
        .tool(ToolBuilder::new("book_table").mrtr_handler(book_table).build())
        .tool(ToolBuilder::new("pay").mrtr_handler(pay).build())
        .tool(ToolBuilder::new("summarize").mrtr_handler(summarize).build())
        .tool(ToolBuilder::new("list_my_roots").mrtr_handler(list_my_roots).build())
        .tool(ToolBuilder::new("shed").mrtr_handler(shed).build())
        .prompt(PromptBuilder::new("briefing").mrtr_handler(briefing).build())
        .resource(ResourceBuilder::new("report://q3").name("report").mrtr_handler(report).build()))
}

/// Two rounds. The state of the first is signed.
fn ship_order(codec: &RequestStateCodec, context: &RequestContext, order: &str) -> Asked<CallToolResult> {
    let Some(answers) = context.input_responses() else {
        return ask(only("country", form("To which country?", &["country"])));
    };
    let Some(state) = context.request_state() else {
        if action(answers, "country") != "accept" {
            return text(format!("{order} stays here: {}.", action(answers, "country")));
        }
        let country = Country { country: field(answers, "country", "country") };
        let state = codec.encode(&country).map_err(|fault| Error::internal(fault.to_string()))?;
        let round = InputRequiredResult::with_requests(only("carrier", form("By whom?", &["carrier"])));
        return Ok(RequestOutcome::InputRequired(round.with_request_state(state)));
    };
    let Country { country } =
        codec.decode(state).map_err(|fault| Error::invalid_params(fault.to_string()))?;
    match action(answers, "carrier").as_str() {
        "accept" => text(format!("{order} goes to {country} by {}.", field(answers, "carrier", "carrier"))),
        other => text(format!("{order} waits for a carrier to {country}: {other}.")),
    }
}

async fn book_table(context: RequestContext, _: NoArguments) -> Asked<CallToolResult> {
    match context.input_responses() {
        Some(answers) => {
            text(format!("{} for {}", field(answers, "day", "day"), field(answers, "party", "guests")))
        }
        None => ask([
            ("day".to_owned(), form("Which day?", &["day"])),
            ("party".to_owned(), form("How many guests?", &["guests"])),
        ]
        .into()),
    }
}

async fn pay(context: RequestContext, _: NoArguments) -> Asked<CallToolResult> {
    match context.input_responses() {
        Some(answers) => text(format!("pay: {}", action(answers, "checkout"))),
        None => ask(only(
            "checkout",
            InputRequest::Elicit(ElicitRequestParams::Url(ElicitUrlParams {
                mode: Some(tower_mcp::protocol::ElicitMode::Url),
                elicitation_id: "checkout-7".into(),
                message: "Please pay.".into(),
                url: "https://example.com/pay".into(),
                meta: None,
            })),
        )),
    }
}

async fn summarize(context: RequestContext, Text { text: long }: Text) -> Asked<CallToolResult> {
    match context.input_responses() {
        Some(answers) => {
            let answer = answer(answers, "summary");
            let said = answer["content"]["text"].as_str().or(answer["content"][0]["text"].as_str());
            text(format!("the model said: {}", said.unwrap_or("nothing")))
        }
        None => {
            let params = CreateMessageParams::new(vec![SamplingMessage::user(long)], 100);
            ask(only("summary", InputRequest::CreateMessage(params)))
        }
    }
}

async fn list_my_roots(context: RequestContext, _: NoArguments) -> Asked<CallToolResult> {
    match context.input_responses() {
        Some(answers) => {
            let answer = answer(answers, "roots");
            let roots = answer["roots"].as_array().cloned().unwrap_or_default();
            let uris: Vec<&str> = roots.iter().filter_map(|root| root["uri"].as_str()).collect();
            text(format!("Roots: {}", uris.join(", ")))
        }
        None => ask(only("roots", InputRequest::ListRoots(ListRootsParams { meta: None }))),
    }
}

/// A round without questions.
async fn shed(context: RequestContext, _: NoArguments) -> Asked<CallToolResult> {
    match context.request_state() {
        Some(state) => text(format!("done after {state}")),
        None => Ok(RequestOutcome::InputRequired(InputRequiredResult::new().with_request_state("one"))),
    }
}

async fn briefing(context: RequestContext, _: HashMap<String, String>) -> Asked<GetPromptResult> {
    match context.input_responses() {
        Some(answers) => {
            let audience = field(answers, "audience", "audience");
            Ok(RequestOutcome::Complete(GetPromptResult::user_message(format!("A briefing for {audience}."))))
        }
        None => ask(only("audience", form("Who is the briefing for?", &["audience"]))),
    }
}

async fn report(context: RequestContext) -> Asked<ReadResourceResult> {
    match context.input_responses() {
        Some(answers) => {
            let reader = field(answers, "reader", "reader");
            Ok(RequestOutcome::Complete(ReadResourceResult::text("report://q3", format!("q3 for {reader}"))))
        }
        None => ask(only("reader", form("Who reads it?", &["reader"]))),
    }
}
