//! Callbacks of the client: the answers by key, and the questions they received.
#![allow(deprecated, reason = "sampling and roots are deprecated, and still part of the revision")]

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, Implementation, ListRootsResult, LoggingMessageNotificationParam,
        NumberOrString, ProgressNotificationParam, ProgressToken,
    },
    service::{NotificationContext, RequestContext},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Scripted callbacks. Clones share one state.
#[derive(Clone, Default)]
pub(crate) struct ScriptedClient {
    state: Arc<Mutex<ScriptState>>,
    changed: Arc<Notify>,
    capabilities: ClientCapabilities,
}

#[derive(Default)]
struct ScriptState {
    notifications: Vec<Value>,
    answers: Map<String, Value>,
    asked: Map<String, Value>,
}

impl ScriptedClient {
    /// Declares forms, URLs, sampling and roots.
    pub(crate) fn with_every_capability() -> Result<Self, String> {
        Self::with_capabilities(json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}))
    }

    pub(crate) fn with_capabilities(capabilities: Value) -> Result<Self, String> {
        let capabilities = serde_json::from_value(capabilities).map_err(|fault| fault.to_string())?;
        Ok(Self { state: Arc::default(), changed: Arc::default(), capabilities })
    }

    /// Sets the answers for the next calls and clears the recorded questions and notifications.
    pub(crate) fn set(&self, answers: &Map<String, Value>) {
        *self.state() = ScriptState { answers: answers.clone(), ..ScriptState::default() };
    }

    /// Parameters of the questions since [`Self::set`], by key.
    pub(crate) fn asked(&self) -> Map<String, Value> {
        self.state().asked.clone()
    }

    /// Waits for `count` progress and log notifications since [`Self::set`] and returns them sorted, because rmcp runs
    /// the callbacks concurrently.
    pub(crate) async fn notifications(&self, count: usize) -> Vec<Value> {
        loop {
            let change = self.changed.notified();
            {
                let mut state = self.state();
                if state.notifications.len() >= count {
                    state.notifications.sort_by_key(Value::to_string);
                    return state.notifications.clone();
                }
            }
            change.await;
        }
    }

    fn record(&self, notification: &impl Serialize) {
        // A value that does not serialize becomes null, and the comparison of the check fails.
        let notification = serde_json::to_value(notification).unwrap_or_default();
        self.state().notifications.push(notification);
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request. The id of the request is the key of the question.
    fn answer<T: DeserializeOwned>(
        &self,
        context: &RequestContext<RoleClient>,
        asked: &impl Serialize,
    ) -> Result<T, ErrorData> {
        let key = context.id.to_string();
        let fault = |fault: serde_json::Error| ErrorData::internal_error(fault.to_string(), None);
        let asked = serde_json::to_value(asked).map_err(fault)?;
        let mut state = self.state();
        state.asked.insert(key.clone(), asked);
        let answer = state.answers.get(&key).cloned();
        let answer =
            answer.ok_or_else(|| ErrorData::invalid_request(format!("no answer for {key}"), None))?;
        serde_json::from_value(answer).map_err(fault)
    }
}

impl ClientHandler for ScriptedClient {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.answer(&context, &request)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.answer(&context, &params)
    }

    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.answer(&context, &json!({}))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let mut notification = params;
        // rmcp generates the token.
        notification.progress_token = ProgressToken(NumberOrString::Number(0));
        self.record(&notification);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.record(&params);
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.capabilities.clone(), Implementation::new("rmcp-interop", "1.0.0"))
    }
}
