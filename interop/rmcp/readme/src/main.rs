//! The tool of README.md on rmcp: `readme` there is compared with the lines between the two marks.
use rmcp::{
    ErrorData, ServiceExt,
    handler::server::{
        tool::{InputResponses, RequestState},
        wrapper::Parameters,
    },
    model::{
        CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, ElicitationSchema,
        InputRequest, InputRequiredResult, RequestStateCodec, SealOptions,
    },
    tool, tool_router,
    transport::stdio,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{error::Error, time::Duration};

#[derive(Deserialize, JsonSchema)]
struct Order {
    name: String,
}

#[derive(Clone)]
struct Databases {
    codec: RequestStateCodec,
}

// README: begin
#[derive(Serialize, Deserialize)]
enum Stage { Region, Keep { id: String } }

#[tool_router(server_handler)]
impl Databases {
    /// Order a database.
    #[tool]
    async fn order_database(
        &self, Parameters(Order { name }): Parameters<Order>,
        RequestState(state): RequestState, InputResponses(answers): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let stage = state.map(|state| self.codec.open_json_with(&state, name.as_bytes())).transpose().map_err(invalid)?;
        let answers = answers.unwrap_or_default();
        let answer = |field: &str| answers.get("answer").filter(|one| one["action"] == "accept").map(|one| one["content"][field].clone());
        match stage {
            None => {
                let form = ElicitationSchema::builder().required_string("region").build().map_err(invalid)?;
                self.ask(&name, "Which region should the database live in?", form, &Stage::Region)
            }
            Some(Stage::Region) => {
                let Some(region) = answer("region") else { return Ok(text("Nothing ordered.")) };
                let region = region.as_str().ok_or_else(|| invalid("region must be text"))?;
                let id = cloud::create(&name, region).await; // runs once more for each copy of this request
                let form = ElicitationSchema::builder().required_bool("keep").build().map_err(invalid)?;
                self.ask(&name, &format!("{id} costs 40 EUR a month. Keep it?"), form, &Stage::Keep { id })
            }
            Some(Stage::Keep { id }) if answer("keep") == Some(true.into()) => Ok(text(&format!("{id} is yours."))),
            Some(Stage::Keep { id }) => {
                cloud::drop(&id).await;
                Ok(text("Dropped."))
            }
        }
    }
}
// README: end

impl Databases {
    fn ask(&self, name: &str, message: &str, form: ElicitationSchema, stage: &Stage) -> Result<CallToolResponse, ErrorData> {
        let options = SealOptions::new().associated_data(name.as_bytes()).ttl(Duration::from_secs(600));
        let state = self.codec.seal_json_with(stage, &options).map_err(invalid)?;
        let params = ElicitRequestParams::FormElicitationParams { meta: None, message: message.into(), requested_schema: form };
        let asks = [("answer".to_owned(), InputRequest::Elicitation(ElicitRequest::new(params)))];
        Ok(InputRequiredResult::new(Some(asks.into_iter().collect()), Some(state)).into())
    }
}

fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn invalid(fault: impl ToString) -> ErrorData {
    ErrorData::invalid_params(fault.to_string(), None)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Databases { codec: RequestStateCodec::try_new([7; 32])? };
    server.serve(stdio()).await?.waiting().await?;
    Ok(())
}

mod cloud {
    pub(crate) async fn create(name: &str, region: &str) -> String {
        format!("{name}-{region}")
    }
    pub(crate) async fn drop(_id: &str) {}
}
