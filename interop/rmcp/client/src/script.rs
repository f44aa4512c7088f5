//! What the callbacks answer, by key, and what they were asked.
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

/// The client's side of a call. Clones share what they hold.
#[derive(Clone, Default)]
pub(crate) struct Script {
    held: Arc<Mutex<Held>>,
    news: Arc<Notify>,
    capabilities: ClientCapabilities,
}

#[derive(Default)]
struct Held {
    heard: Vec<Value>,
    answers: Map<String, Value>,
    asked: Map<String, Value>,
}

impl Script {
    /// Can be asked everything.
    pub(crate) fn able() -> Result<Self, String> {
        Self::with(json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}))
    }

    pub(crate) fn with(capabilities: Value) -> Result<Self, String> {
        let capabilities = serde_json::from_value(capabilities).map_err(|fault| fault.to_string())?;
        Ok(Self { held: Arc::default(), news: Arc::default(), capabilities })
    }

    /// What to answer from now on; what was asked is forgotten.
    pub(crate) fn set(&self, answers: &Map<String, Value>) {
        *self.held() = Held { answers: answers.clone(), ..Held::default() };
    }

    /// What was asked since then, by key.
    pub(crate) fn asked(&self) -> Map<String, Value> {
        self.held().asked.clone()
    }

    /// Progress and log messages since then, once there are that many; sorted, since rmcp tells them side by side.
    pub(crate) async fn heard(&self, count: usize) -> Vec<Value> {
        loop {
            let news = self.news.notified();
            {
                let mut held = self.held();
                if held.heard.len() >= count {
                    held.heard.sort_by_key(Value::to_string);
                    return held.heard.clone();
                }
            }
            news.await;
        }
    }

    fn hear(&self, told: &impl Serialize) {
        // What cannot be written is seen to be missing.
        let told = serde_json::to_value(told).unwrap_or_default();
        self.held().heard.push(told);
        self.news.notify_one();
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of an ask is the id of its request.
    fn answer<T: DeserializeOwned>(
        &self,
        context: &RequestContext<RoleClient>,
        asked: &impl Serialize,
    ) -> Result<T, ErrorData> {
        let key = context.id.to_string();
        let fault = |fault: serde_json::Error| ErrorData::internal_error(fault.to_string(), None);
        let asked = serde_json::to_value(asked).map_err(fault)?;
        let mut held = self.held();
        held.asked.insert(key.clone(), asked);
        let answer = held.answers.get(&key).cloned();
        let answer =
            answer.ok_or_else(|| ErrorData::invalid_request(format!("no answer for {key}"), None))?;
        serde_json::from_value(answer).map_err(fault)
    }
}

impl ClientHandler for Script {
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
        let mut told = params;
        // The token is one that rmcp made up.
        told.progress_token = ProgressToken(NumberOrString::Number(0));
        self.hear(&told);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(&params);
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.capabilities.clone(), Implementation::new("rmcp-interop", "1.0.0"))
    }
}
