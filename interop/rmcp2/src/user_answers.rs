//! The callbacks of the client, which answer as the case says.

use crate::{
    asks::{fault, read},
    scripted_user::{ScriptedUser, UserState},
};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientInfo, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
        ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::{Map, Value, json};

impl ScriptedUser {
    pub(crate) fn question_keys(&self) -> Vec<String> {
        self.state().asked.clone()
    }
}

/// The answer to a question, as JSON.
fn answer(state: &mut UserState, asked: &Value) -> Result<Value, ErrorData> {
    let no_fields = Map::new();
    let fields = asked["requestedSchema"]["properties"].as_object().unwrap_or(&no_fields);
    let message = asked["message"].as_str().unwrap_or_default();
    let key = state.case.key_of(message, fields, &state.asked);
    let key =
        key.ok_or_else(|| ErrorData::invalid_request(format!("unexpected question: {message}"), None))?;
    state.asked.push(key.clone());
    Ok(match state.case.action(&key) {
        Some(action) => json!({"action": action}),
        None => json!({"action": "accept", "content": state.case.content(&key, fields)}),
    })
}

impl ClientHandler for ScriptedUser {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(request).map_err(fault)?;
        read(answer(&mut self.state(), &asked)?)
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let mut state = self.state();
        state.asked.push("sample".to_owned());
        let content = json!({"type": "text", "text": state.case.sample.clone().unwrap_or_default()});
        read(json!({"role": "assistant", "content": content, "model": "none"}))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let mut state = self.state();
        state.asked.push("roots".to_owned());
        let roots: Vec<Value> = state.case.roots.iter().flatten().map(|uri| json!({"uri": uri})).collect();
        read(json!({"roots": roots}))
    }

    async fn on_progress(
        &self,
        _notification: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.update(|state| state.progress += 1);
    }

    async fn on_logging_message(
        &self,
        _notification: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.update(|state| state.logs += 1);
    }

    #[cfg(not(feature = "of-2026"))]
    async fn on_url_elicitation_notification_complete(
        &self,
        notification: rmcp::model::ElicitationResponseNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.update(|state| state.completed.push(notification.elicitation_id));
    }

    #[cfg(feature = "of-2026")]
    async fn on_custom_notification(
        &self,
        notification: rmcp::model::CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        let id = notification.params.as_ref().and_then(|params| params["elicitationId"].as_str());
        if let Some(id) = id.filter(|_| notification.method == "notifications/elicitation/complete") {
            self.update(|state| state.completed.push(id.to_owned()));
        }
    }

    fn get_info(&self) -> ClientInfo {
        let mut info = ClientInfo::default();
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
        // This JSON always parses.
        info.capabilities = serde_json::from_value(capabilities).unwrap_or_default();
        info.client_info.name = "rmcp-peer".to_owned();
        info.client_info.version = "1.0.0".to_owned();
        info
    }
}
