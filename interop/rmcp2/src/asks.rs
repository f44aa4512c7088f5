//! What is asked of the client, and told to it, while one request is served. It is built from JSON, which is the same in
//! both generations of rmcp.

use rmcp::{
    ErrorData, RoleServer,
    model::{CustomNotification, ServerNotification},
    service::RequestContext,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Display;

/// The client of one request.
pub(crate) struct Asker(pub(crate) RequestContext<RoleServer>);

/// What came back: a field's value, or what was done instead.
pub(crate) type Answer = Result<String, String>;

impl Asker {
    /// A form of one field.
    pub(crate) async fn form(&self, message: &str, field: &str, kind: &str) -> Result<Answer, ErrorData> {
        let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
        let ask = json!({"mode": "form", "message": message, "requestedSchema": schema});
        let said = self.elicit(ask).await?;
        Ok(match said["action"].as_str() {
            Some("accept") => Ok(plain(&said["content"][field])),
            other => Err(other.unwrap_or("no action").to_owned()),
        })
    }

    /// An elicitation of either mode, and its result.
    pub(crate) async fn elicit(&self, params: Value) -> Result<Value, ErrorData> {
        let said = self.0.peer.create_elicitation(read(params)?).await.map_err(fault)?;
        serde_json::to_value(said).map_err(fault)
    }

    /// The text of what the client's model says.
    pub(crate) async fn sample(&self, prompt: &str) -> Result<String, ErrorData> {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        let params = read(json!({"messages": [message], "maxTokens": 50}))?;
        let said = self.0.peer.create_message(params).await.map_err(fault)?;
        let said = serde_json::to_value(said).map_err(fault)?;
        Ok(plain(&said["content"]["text"]))
    }

    pub(crate) async fn roots(&self) -> Result<Vec<String>, ErrorData> {
        let said = self.0.peer.list_roots().await.map_err(fault)?;
        Ok(said.roots.into_iter().map(|root| root.uri).collect())
    }

    /// Progress, if a token was sent.
    pub(crate) async fn report(&self, at: u64, to: u64) -> Result<(), ErrorData> {
        let Some(token) = self.0.meta.get_progress_token() else { return Ok(()) };
        let params =
            json!({"progressToken": token, "progress": at, "total": to, "message": format!("at {at}")});
        self.0.peer.notify_progress(read(params)?).await.map_err(fault)
    }

    pub(crate) async fn log(&self, data: &str) -> Result<(), ErrorData> {
        let params = json!({"level": "info", "data": data});
        self.0.peer.notify_logging_message(read(params)?).await.map_err(fault)
    }

    /// The rmcp of today has no function for it.
    pub(crate) async fn complete(&self, elicitation_id: &str) -> Result<(), ErrorData> {
        let params = json!({"elicitationId": elicitation_id});
        let notification = CustomNotification::new("notifications/elicitation/complete", Some(params));
        let notification = ServerNotification::CustomNotification(notification);
        self.0.peer.send_notification(notification).await.map_err(fault)
    }
}

/// A value of rmcp's, from the JSON of the specification.
pub(crate) fn read<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(fault)
}

pub(crate) fn fault(fault: impl Display) -> ErrorData {
    ErrorData::internal_error(fault.to_string(), None)
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
