//! Questions and notifications for the client, sent while a request is served. Their parameters are built from JSON,
//! which is the same in both generations of rmcp.

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

/// The value of a field; `Err` has the action of an answer without content.
pub(crate) type Answer = Result<String, String>;

impl Asker {
    /// Asks with a form of one field.
    pub(crate) async fn form(&self, message: &str, field: &str, kind: &str) -> Result<Answer, ErrorData> {
        let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
        let ask = json!({"mode": "form", "message": message, "requestedSchema": schema});
        let reply = self.elicit(ask).await?;
        Ok(match reply["action"].as_str() {
            Some("accept") => Ok(plain(&reply["content"][field])),
            other => Err(other.unwrap_or("no action").to_owned()),
        })
    }

    /// Asks with an elicitation of either mode and returns its result.
    pub(crate) async fn elicit(&self, params: Value) -> Result<Value, ErrorData> {
        let reply = self.0.peer.create_elicitation(read(params)?).await.map_err(fault)?;
        serde_json::to_value(reply).map_err(fault)
    }

    /// Asks the client's model and returns the text of its answer.
    pub(crate) async fn sample(&self, prompt: &str) -> Result<String, ErrorData> {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        let params = read(json!({"messages": [message], "maxTokens": 50}))?;
        let reply = self.0.peer.create_message(params).await.map_err(fault)?;
        let reply = serde_json::to_value(reply).map_err(fault)?;
        Ok(plain(&reply["content"]["text"]))
    }

    pub(crate) async fn roots(&self) -> Result<Vec<String>, ErrorData> {
        let reply = self.0.peer.list_roots().await.map_err(fault)?;
        Ok(reply.roots.into_iter().map(|root| root.uri).collect())
    }

    /// Sends progress, if the request has a progress token.
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

    /// Sends `notifications/elicitation/complete`. Current rmcp has no function for it.
    pub(crate) async fn complete(&self, elicitation_id: &str) -> Result<(), ErrorData> {
        let params = json!({"elicitationId": elicitation_id});
        let notification = CustomNotification::new("notifications/elicitation/complete", Some(params));
        let notification = ServerNotification::CustomNotification(notification);
        self.0.peer.send_notification(notification).await.map_err(fault)
    }
}

/// A type of rmcp, from the JSON of the specification.
pub(crate) fn read<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(fault)
}

pub(crate) fn fault(fault: impl Display) -> ErrorData {
    ErrorData::internal_error(fault.to_string(), None)
}

/// A string as it is, any other value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
