//! The server under test, or two replicas of it, and one client.

use crate::{replica_client::ReplicaClient, scripted_client::ScriptedClient};
use rmcp::{
    model::{
        CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
        InputRequiredResult, InputResponses, JsonObject, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse,
    },
    service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService, ServiceError},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::process::Stdio;
use tokio::process::Command;

/// The address of the server, or the command that starts it.
pub(crate) enum Target {
    Http(Vec<String>),
    Stdio(Vec<String>),
}

/// A method that can ask for input.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// A call, without answers.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Option<JsonObject>,
}

impl Call {
    pub(crate) fn tool(name: &str, arguments: Value) -> Self {
        Self { kind: Kind::Tool, name: name.into(), arguments: arguments.as_object().cloned() }
    }

    pub(crate) fn prompt(name: &str) -> Self {
        Self { kind: Kind::Prompt, name: name.into(), arguments: None }
    }

    pub(crate) fn resource(uri: &str) -> Self {
        Self { kind: Kind::Resource, name: uri.into(), arguments: None }
    }
}

/// Answers and state of a retry.
#[derive(Clone, Default)]
pub(crate) struct Retry {
    pub(crate) responses: Option<Map<String, Value>>,
    pub(crate) state: Option<String>,
}

impl Retry {
    pub(crate) fn state(state: &str) -> Self {
        Self { responses: None, state: Some(state.into()) }
    }

    pub(crate) fn answers(answers: &Value, state: &str) -> Self {
        Self { responses: answers.as_object().cloned(), state: Some(state.into()) }
    }

    fn responses(&self) -> Option<InputResponses> {
        self.responses.clone().map(|responses| responses.into_iter().collect())
    }
}

/// The result of one request: complete, or a round of questions.
#[derive(Debug)]
pub(crate) enum Leg {
    Done(Value),
    Asks(Box<InputRequiredResult>),
}

/// A client and its connection to the server.
pub(crate) struct Fleet {
    pub(crate) client: RunningService<RoleClient, ScriptedClient>,
    pub(crate) script: ScriptedClient,
    pub(crate) replicas: Option<ReplicaClient>,
    target: Target,
}

impl Fleet {
    pub(crate) async fn connect(target: &Target) -> Result<Self, String> {
        Self::with(target, ScriptedClient::with_every_capability()?).await
    }

    async fn with(target: &Target, script: ScriptedClient) -> Result<Self, String> {
        let lifecycle =
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let (client, replicas, target) = match target {
            Target::Http(urls) => {
                let replicas = ReplicaClient::new(urls);
                let config = StreamableHttpClientTransportConfig::with_uri(urls[0].as_str());
                let transport = StreamableHttpClientTransport::with_client(replicas.clone(), config);
                let client = script.clone().serve_with_lifecycle(transport, lifecycle).await;
                (client, Some(replicas), Target::Http(urls.clone()))
            }
            Target::Stdio(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                let (transport, _) = TokioChildProcess::builder(command)
                    .stderr(Stdio::null())
                    .spawn()
                    .map_err(|fault| fault.to_string())?;
                let client = script.clone().serve_with_lifecycle(transport, lifecycle).await;
                (client, None, Target::Stdio(words.clone()))
            }
        };
        Ok(Self { client: client.map_err(|fault| fault.to_string())?, script, replicas, target })
    }

    /// Another client of the same server, which declares these capabilities.
    pub(crate) async fn with_capabilities(&self, capabilities: Value) -> Result<Self, String> {
        Self::with(&self.target, ScriptedClient::with_capabilities(capabilities)?).await
    }

    /// Another client, of the first replica only. Notifications about changes reach the clients of the replica that
    /// changed.
    pub(crate) async fn first_replica(&self) -> Result<Self, String> {
        match &self.target {
            Target::Http(urls) => Self::connect(&Target::Http(urls[..1].to_vec())).await,
            stdio @ Target::Stdio(_) => Self::connect(stdio).await,
        }
    }

    pub(crate) async fn close(self) {
        // The check is over. An error of the shutdown changes nothing.
        let _ = self.client.cancel().await;
    }

    /// Sends one request, without rmcp's loop.
    pub(crate) async fn leg(&self, call: &Call, retry: &Retry) -> Result<Leg, ServiceError> {
        Ok(match call.kind {
            Kind::Tool => match self.client.call_tool_once(tool(call, retry)).await? {
                CallToolResponse::Complete(result) => Leg::Done(value(&result)?),
                CallToolResponse::InputRequired(required) => Leg::Asks(Box::new(required)),
                _ => return Err(ServiceError::UnexpectedResponse),
            },
            Kind::Prompt => match self.client.get_prompt_once(prompt(call, retry)).await? {
                GetPromptResponse::Complete(result) => Leg::Done(value(&result)?),
                GetPromptResponse::InputRequired(required) => Leg::Asks(Box::new(required)),
                _ => return Err(ServiceError::UnexpectedResponse),
            },
            Kind::Resource => match self.client.read_resource_once(resource(call, retry)).await? {
                ReadResourceResponse::Complete(result) => Leg::Done(value(&result)?),
                ReadResourceResponse::InputRequired(required) => Leg::Asks(Box::new(required)),
                _ => return Err(ServiceError::UnexpectedResponse),
            },
        })
    }

    /// Makes a whole call, by rmcp's loop. With a retry, the call starts at a later round.
    pub(crate) async fn call(&self, call: &Call, retry: &Retry) -> Result<Value, ServiceError> {
        match call.kind {
            Kind::Tool => value(&self.client.call_tool(tool(call, retry)).await?),
            Kind::Prompt => value(&self.client.get_prompt(prompt(call, retry)).await?),
            Kind::Resource => value(&self.client.read_resource(resource(call, retry)).await?),
        }
    }
}

fn tool(call: &Call, retry: &Retry) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(call.name.clone());
    params.arguments.clone_from(&call.arguments);
    (params.input_responses, params.request_state) = (retry.responses(), retry.state.clone());
    params
}

fn prompt(call: &Call, retry: &Retry) -> GetPromptRequestParams {
    let mut params = GetPromptRequestParams::new(call.name.clone());
    params.arguments.clone_from(&call.arguments);
    (params.input_responses, params.request_state) = (retry.responses(), retry.state.clone());
    params
}

fn resource(call: &Call, retry: &Retry) -> ReadResourceRequestParams {
    let mut params = ReadResourceRequestParams::new(call.name.clone());
    (params.input_responses, params.request_state) = (retry.responses(), retry.state.clone());
    params
}

fn value(result: &impl Serialize) -> Result<Value, ServiceError> {
    serde_json::to_value(result)
        .map_err(|fault| ServiceError::McpError(ErrorData::internal_error(fault.to_string(), None)))
}
