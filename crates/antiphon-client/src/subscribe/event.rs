//! The events of a subscription.

use antiphon_wire::{DetailedTask, SubscriptionFilter};

/// An event of a subscription. The events of a kind are idempotent: several that were not taken yet are one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// The subscription is open. The filter holds the changes that the server will report; changes that the server does
    /// not support are missing.
    ///
    /// The first event of a subscription, and the first one after a lost connection was opened again. Changes in
    /// between are unknown, so request all data again that may have changed.
    Acknowledged(SubscriptionFilter),
    /// The server closed the subscription with its response, as it does before it stops. The subscription is opened again as
    /// its [`ReconnectPolicy`](crate::ReconnectPolicy) says; the next event is then another acknowledgement.
    Closed,
    /// The list of tools changed.
    ToolsListChanged,
    /// The list of prompts changed.
    PromptsListChanged,
    /// The list of resources changed.
    ResourcesListChanged,
    /// A resource changed, and may need to be read again.
    ResourceUpdated {
        /// The URI that was asked for, or that of a part of it.
        uri: String,
    },
    /// The state of a task changed. This is the latest state; earlier ones that were not taken are left out.
    ///
    /// > Each notification carries a complete `DetailedTask` for the current status, identical to what `tasks/get` would have
    /// > returned at that moment.
    Task(Box<DetailedTask>),
}

impl PartialEq for SubscriptionEvent {
    /// Compares the content. Two tasks are equal if their JSON is.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Acknowledged(one), Self::Acknowledged(other)) => one == other,
            (Self::ResourceUpdated { uri: one }, Self::ResourceUpdated { uri: other }) => one == other,
            (Self::Task(one), Self::Task(other)) => {
                // Not every JSON text is a value: the text of such a task counts.
                let json = |task: &DetailedTask| {
                    serde_json::to_value(task).map_err(|_| serde_json::to_string(task).ok())
                };
                json(one) == json(other)
            }
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_whose_json_is_no_value_are_compared() {
        let check = |one: &str, other: &str, equal: bool| {
            let event = |result: &str| {
                let text = format!(
                    r#"{{"taskId":"t","status":"completed","createdAt":"2026-07-28T12:00:00Z","lastUpdatedAt":"2026-07-28T12:00:00Z","ttlMs":null,"result":{result}}}"#
                );
                SubscriptionEvent::Task(serde_json::from_str(&text).unwrap())
            };
            assert_eq!(event(one) == event(other), equal, "{one} {other}");
        };
        check(r#"{"a":1e400}"#, r#"{"a":1e400}"#, true);
        check(r#"{"a":1e400}"#, r#"{"a":1e401}"#, false);
        check(r#"{"a":"\ud83d"}"#, r#"{"a":"\ud83e"}"#, false);
        check(r#"{"a":1e400}"#, r#"{"a":1}"#, false);
        check(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, true);
    }
}
