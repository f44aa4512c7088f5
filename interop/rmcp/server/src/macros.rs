//! Tools and a prompt made with rmcp's macros. A tool asks by returning `InputRequiredResult`, and receives state and
//! answers as parameters.

use crate::{asks::text_form, handler::Peer};
use rmcp::{
    ErrorData, Json,
    handler::server::{
        tool::{InputResponses, RequestState},
        wrapper::Parameters,
    },
    model::{CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult},
    prompt, prompt_router, tool, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(JsonSchema, Serialize)]
struct Total {
    total: i64,
    note: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    greeting: String,
}

#[tool_router(vis = "pub(crate)")]
impl Peer {
    #[tool(description = "Say it back.")]
    async fn echo(&self, Parameters(Text { text }): Parameters<Text>) -> String {
        text
    }

    #[tool(description = "Add two numbers; the answer is structured and holds a null.")]
    async fn add(&self, Parameters(Pair { a, b }): Parameters<Pair>) -> Json<Total> {
        Json(Total { total: a + b, note: None })
    }

    #[tool(description = "Greet someone whose name is asked for.")]
    async fn greet(
        &self,
        Parameters(Greeting { greeting }): Parameters<Greeting>,
        RequestState(state): RequestState,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        if state.as_deref() != Some("greeting") {
            let ask = [("who".to_owned(), text_form("Whom?", "name")?)].into_iter().collect();
            return Ok(InputRequiredResult::new(Some(ask), Some("greeting".to_owned())).into());
        }
        let answer = responses.unwrap_or_default().remove("who").unwrap_or_default();
        let text = match answer["action"].as_str() {
            Some("accept") => {
                format!("{greeting}, {}!", answer["content"]["name"].as_str().unwrap_or_default())
            }
            other => format!("Nobody to greet: {}.", other.unwrap_or("no answer")),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

#[prompt_router(vis = "pub(crate)")]
impl Peer {
    /// Asks in every round, because rmcp passes no answers to a prompt made with its macro.
    #[prompt(description = "Ask, and ask again.")]
    async fn ask_for_ever(&self) -> Result<InputRequiredResult, ErrorData> {
        let ask = [("who".to_owned(), text_form("Whom?", "name")?)].into_iter().collect();
        Ok(InputRequiredResult::new(Some(ask), Some("asked".to_owned())))
    }
}
