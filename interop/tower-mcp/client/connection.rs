//! The server under test, clients of it, and their answers to its questions.

use crate::error::AnyError;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tower_mcp::{
    JsonRpcError, ProtocolSupport,
    client::{
        ClientHandler, HttpClientTransport, McpClient, McpClientBuilder, ServerNotification,
        StdioClientTransport,
    },
    protocol::{ElicitFormParams, ElicitRequestParams, ElicitResult},
    tasks::DetailedTask,
};

/// The address of the server, or the command that starts it.
pub(crate) enum Target {
    Http(String),
    Stdio(Vec<String>),
}

/// A client, the messages of the questions that it answered, and the changes of tasks that it received.
pub(crate) struct Connection {
    pub(crate) client: McpClient,
    pub(crate) changes: UnboundedReceiver<DetailedTask>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Connection {
    pub(crate) fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }
}

impl Target {
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Stdio(_) => "stdio",
        }
    }

    /// A client of 2026-07-28 with tasks and forms, which has these answers for the questions with these messages.
    pub(crate) async fn client(&self, answers: &[(&str, Value)]) -> Result<Connection, AnyError> {
        self.modern(McpClient::builder().with_tasks().with_elicitation(), answers).await
    }

    /// The same without tasks.
    pub(crate) async fn client_without_tasks(
        &self,
        answers: &[(&str, Value)],
    ) -> Result<Connection, AnyError> {
        self.modern(McpClient::builder().with_elicitation(), answers).await
    }

    async fn modern(
        &self,
        builder: McpClientBuilder,
        answers: &[(&str, Value)],
    ) -> Result<Connection, AnyError> {
        let builder = builder.protocol_support(ProtocolSupport::try_new(["2026-07-28"])?);
        let connection = self.connect(builder, answers).await?;
        connection.client.discover("tower-mcp-peer", "1.0.0").await?;
        Ok(connection)
    }

    /// A client on a session of 2025-11-25.
    pub(crate) async fn session(&self, answers: &[(&str, Value)]) -> Result<Connection, AnyError> {
        let builder = McpClient::builder().with_elicitation().protocol_support(ProtocolSupport::stable());
        let connection = self.connect(builder, answers).await?;
        connection.client.initialize("tower-mcp-peer", "1.0.0").await?;
        Ok(connection)
    }

    async fn connect(
        &self,
        builder: McpClientBuilder,
        answers: &[(&str, Value)],
    ) -> Result<Connection, AnyError> {
        let answers = answers.iter().map(|(message, answer)| (message.to_string(), answer.clone())).collect();
        let (told, changes) = unbounded_channel();
        let asked = Arc::default();
        let handler = Answers { answers, asked: Arc::clone(&asked), told };
        let client = match self {
            Self::Http(url) => builder.connect(HttpClientTransport::new(url), handler).await?,
            Self::Stdio(words) => {
                let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                let transport = StdioClientTransport::spawn(&words[0], &arguments).await?;
                builder.connect(transport, handler).await?
            }
        };
        Ok(Connection { client, changes, asked })
    }
}

/// Answers to questions, by their messages.
struct Answers {
    answers: Vec<(String, Value)>,
    asked: Arc<Mutex<Vec<String>>>,
    told: UnboundedSender<DetailedTask>,
}

#[async_trait]
impl ClientHandler for Answers {
    async fn handle_elicit(&self, params: ElicitRequestParams) -> Result<ElicitResult, JsonRpcError> {
        let ElicitRequestParams::Form(ElicitFormParams { message, .. }) = params else {
            return Err(JsonRpcError::invalid_params("a question without a form"));
        };
        lock(&self.asked).push(message.clone());
        let answer = self.answers.iter().find(|(known, _)| *known == message);
        let (_, answer) =
            answer.ok_or_else(|| JsonRpcError::internal_error(format!("no answer for {message}")))?;
        serde_json::from_value(answer.clone())
            .map_err(|fault| JsonRpcError::internal_error(fault.to_string()))
    }

    async fn on_notification(&self, notification: ServerNotification) {
        let notification = match notification {
            ServerNotification::Subscription { notification, .. } => *notification,
            other => other,
        };
        if let ServerNotification::FinalTaskStatusChanged(change) = notification {
            // The check may be over.
            let _ = self.told.send(change.task);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
