//! Questions for the client, and the members of a request that carry answers.
#![allow(deprecated, reason = "sampling and roots are deprecated, and still part of the revision")]

use rmcp::{
    ErrorData,
    model::{
        CallToolResult, CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
        ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, InputResponses, JsonObject,
        ListRootsRequest, SamplingMessage,
    },
};
use serde_json::Value;

/// The reply to one request.
pub(crate) enum Reply {
    /// A final result with this text.
    Text(String),
    /// A final result of a tool.
    Tool(CallToolResult),
    /// A result that asks for input.
    Ask(InputRequiredResult),
}

pub(crate) type HandlerResult = Result<Reply, ErrorData>;

/// The parameters of one request.
pub(crate) struct Leg {
    pub(crate) arguments: JsonObject,
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

impl Leg {
    pub(crate) fn text(&self, argument: &str) -> Result<&str, ErrorData> {
        let value = self.arguments.get(argument).and_then(Value::as_str);
        value.ok_or_else(|| ErrorData::invalid_params(format!("{argument} must be a string"), None))
    }

    pub(crate) fn number(&self, argument: &str) -> Result<i64, ErrorData> {
        let value = self.arguments.get(argument).and_then(Value::as_i64);
        value.ok_or_else(|| ErrorData::invalid_params(format!("{argument} must be a whole number"), None))
    }

    pub(crate) fn answer(&self, key: &str) -> Option<&Value> {
        self.responses.as_ref()?.get(key)
    }

    /// The field of an accepted form; `Err` has the action of any other answer.
    pub(crate) fn filled(&self, key: &str, field: &str) -> Option<Result<&Value, &str>> {
        let answer = self.answer(key)?;
        Some(match answer["action"].as_str() {
            Some("accept") => Ok(&answer["content"][field]),
            Some(other) => Err(other),
            None => Err("no action"),
        })
    }
}

/// A result with these questions and this state.
pub(crate) fn round<const N: usize>(asks: [(&str, InputRequest); N], state: Option<&str>) -> Reply {
    let asks: InputRequests = asks.into_iter().map(|(key, ask)| (key.to_owned(), ask)).collect();
    Reply::Ask(InputRequiredResult::new(Some(asks), state.map(str::to_owned)))
}

pub(crate) fn form(message: &str, requested_schema: ElicitationSchema) -> InputRequest {
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema,
    };
    InputRequest::Elicitation(ElicitRequest::new(params))
}

/// A form with one required text.
pub(crate) fn text_form(message: &str, field: &str) -> Result<InputRequest, ErrorData> {
    Ok(form(message, ElicitationSchema::builder().required_string(field).build().map_err(internal)?))
}

pub(crate) fn page(message: &str, url: String) -> InputRequest {
    let params = ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: message.to_owned(),
        url,
        elicitation_id: String::new(),
    };
    InputRequest::Elicitation(ElicitRequest::new(params))
}

pub(crate) fn sample(text: &str) -> InputRequest {
    let messages = vec![SamplingMessage::user_text(format!("Summarize: {text}"))];
    let mut params = CreateMessageRequestParams::new(messages, 50);
    params.system_prompt = Some("Be brief.".to_owned());
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

pub(crate) fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// The URIs of an answer to [`roots`], as one text.
pub(crate) fn uris(answer: &Value) -> String {
    let roots = answer["roots"].as_array().into_iter().flatten();
    roots.filter_map(|root| root["uri"].as_str()).collect::<Vec<_>>().join(", ")
}

pub(crate) fn internal(fault: impl ToString) -> ErrorData {
    ErrorData::internal_error(fault.to_string(), None)
}
