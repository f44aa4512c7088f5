//! How whoever sits at the client answers: as the case says.

use crate::{
    asks::{fault, read},
    held::{Held, Person},
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

impl Person {
    pub(crate) fn asked(&self) -> Vec<String> {
        self.held().asked.clone()
    }
}

/// The answer to a question that was read, as JSON.
fn answer(held: &mut Held, asked: &Value) -> Result<Value, ErrorData> {
    let no_fields = Map::new();
    let fields = asked["requestedSchema"]["properties"].as_object().unwrap_or(&no_fields);
    let message = asked["message"].as_str().unwrap_or_default();
    let key = held.case.key_of(message, fields, &held.asked);
    let key = key.ok_or_else(|| ErrorData::invalid_request(format!("not expected: {message}"), None))?;
    held.asked.push(key.clone());
    Ok(match held.case.action(&key) {
        Some(action) => json!({"action": action}),
        None => json!({"action": "accept", "content": held.case.content(&key, fields)}),
    })
}

impl ClientHandler for Person {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(request).map_err(fault)?;
        read(answer(&mut self.held(), &asked)?)
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let mut held = self.held();
        held.asked.push("sample".to_owned());
        let content = json!({"type": "text", "text": held.case.sample.clone().unwrap_or_default()});
        read(json!({"role": "assistant", "content": content, "model": "none"}))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let mut held = self.held();
        held.asked.push("roots".to_owned());
        let roots: Vec<Value> = held.case.roots.iter().flatten().map(|uri| json!({"uri": uri})).collect();
        read(json!({"roots": roots}))
    }

    async fn on_progress(&self, _told: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.hear(|held| held.progress += 1);
    }

    async fn on_logging_message(
        &self,
        _told: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(|held| held.logs += 1);
    }

    #[cfg(not(feature = "of-2026"))]
    async fn on_url_elicitation_notification_complete(
        &self,
        told: rmcp::model::ElicitationResponseNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(|held| held.completed.push(told.elicitation_id));
    }

    #[cfg(feature = "of-2026")]
    async fn on_custom_notification(
        &self,
        told: rmcp::model::CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        let id = told.params.as_ref().and_then(|params| params["elicitationId"].as_str());
        if let Some(id) = id.filter(|_| told.method == "notifications/elicitation/complete") {
            self.hear(|held| held.completed.push(id.to_owned()));
        }
    }

    fn get_info(&self) -> ClientInfo {
        let mut info = ClientInfo::default();
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
        // What the specification says of capabilities can be read.
        info.capabilities = serde_json::from_value(capabilities).unwrap_or_default();
        info.client_info.name = "rmcp-peer".to_owned();
        info.client_info.version = "1.0.0".to_owned();
        info
    }
}
