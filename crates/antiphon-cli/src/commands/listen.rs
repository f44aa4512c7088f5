//! `listen`: prints one line for each change.

use super::list::{print_failure, with_client};
use crate::{
    args::{ClientArgs, ListenArgs, ListenTo},
    console,
    failure::{Exit, Failure},
};
use antiphon::{
    client::{
        Subscription,
        events::{ReconnectPolicy, SubscriptionEvent as Event},
    },
    wire::{SubscriptionFilter, tasks::DetailedTask},
};
use serde::Serialize;

pub(super) async fn listen(args: ListenArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let ListenArgs { to, json, no_reconnect, target } = args;
    let work = with_client(&target, ClientArgs::default(), log, async |client| {
        // The first connection is not retried, so that a wrong URL fails at once.
        let changes = client.listen(filter(to)).reconnect(ReconnectPolicy::never());
        tokio::select! {
            // The signal handler is installed before anything is printed.
            biased;
            () = interrupted() => Ok(Exit::Interrupted),
            exit = follow(changes, json, no_reconnect) => exit,
        }
    });
    print_failure(json, work.await)
}

/// Prints events until there are no more, or until the output is closed.
async fn follow(mut changes: Subscription, as_json: bool, no_reconnect: bool) -> Result<Exit, Failure> {
    while let Some(event) = changes.next().await {
        let event = event?;
        if matches!(event, Event::Acknowledged(_)) && !no_reconnect {
            changes = changes.reconnect(ReconnectPolicy::default());
        }
        let printed =
            if as_json { console::try_out_json(&text(&event)?) } else { console::try_out(&line(&event)) };
        if printed.is_err() {
            return Ok(Exit::Done);
        }
    }
    console::hint("the server ended the subscription");
    Ok(Exit::Done)
}

/// Returns the filter of the flags; without one, that of all lists.
fn filter(to: ListenTo) -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::new();
    if !(to.tools || to.prompts || to.resources) && to.uris.is_empty() && to.tasks.is_empty() {
        return filter.tools().prompts().resources();
    }
    filter = if to.tools { filter.tools() } else { filter };
    filter = if to.prompts { filter.prompts() } else { filter };
    filter = if to.resources { filter.resources() } else { filter };
    let filter = to.uris.into_iter().fold(filter, SubscriptionFilter::resource);
    to.tasks.into_iter().fold(filter, SubscriptionFilter::task)
}

/// Returns the names of what a filter selects, for people.
fn names(filter: &SubscriptionFilter) -> Vec<String> {
    let lists = [
        (filter.tools_list_changed, "tools"),
        (filter.prompts_list_changed, "prompts"),
        (filter.resources_list_changed, "resources"),
    ];
    let lists =
        lists.into_iter().filter(|(wanted, _)| *wanted == Some(true)).map(|(_, name)| name.to_owned());
    let uris = filter.resource_subscriptions.iter().flatten();
    let tasks = filter.task_ids.iter().flatten().map(|id| format!("task {}", console::line(id)));
    lists.chain(uris.map(|uri| format!("resource {}", console::line(uri)))).chain(tasks).collect()
}

fn line(event: &Event) -> String {
    match event {
        Event::Acknowledged(agreed) => match names(agreed) {
            names if names.is_empty() => "acknowledged: nothing".to_owned(),
            names => format!("acknowledged: {}", names.join(", ")),
        },
        Event::Closed => "closed by the server: it is opened again".to_owned(),
        Event::ToolsListChanged => "tools changed".to_owned(),
        Event::PromptsListChanged => "prompts changed".to_owned(),
        Event::ResourcesListChanged => "resources changed".to_owned(),
        Event::ResourceUpdated { uri } => format!("resource updated {}", console::line(uri)),
        Event::Task(state) => {
            let message =
                state.task.status_message.as_deref().map(|text| format!(": {}", console::line(text)));
            let id = console::line(&state.task.task_id);
            format!("task {id} {}{}", state.task.status, message.unwrap_or_default())
        }
        _ => "something changed".to_owned(),
    }
}

/// The object that `--json` prints for an event. It is written from the text of the server: not every JSON text is a
/// [`serde_json::Value`].
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum EventObject<'a> {
    Acknowledged { notifications: &'a SubscriptionFilter },
    Closed,
    ToolsListChanged,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated { uri: &'a str },
    Task { task: &'a DetailedTask },
    Other,
}

/// Returns the event as JSON.
fn text(event: &Event) -> Result<String, Failure> {
    let object = match event {
        Event::Acknowledged(agreed) => EventObject::Acknowledged { notifications: agreed },
        Event::Closed => EventObject::Closed,
        Event::ToolsListChanged => EventObject::ToolsListChanged,
        Event::PromptsListChanged => EventObject::PromptsListChanged,
        Event::ResourcesListChanged => EventObject::ResourcesListChanged,
        Event::ResourceUpdated { uri } => EventObject::ResourceUpdated { uri },
        Event::Task(state) => EventObject::Task { task: state },
        _ => EventObject::Other,
    };
    serde_json::to_string(&object)
        .map_err(|fault| Failure::protocol("output", format!("the event cannot be written as JSON: {fault}")))
}

/// Resolves at Ctrl-C.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler, the signal ends the process.
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_printed_as_text() {
        let check = |event: Event, expected: &str| {
            assert!(matches!(text(&event), Ok(shown) if shown == expected), "{expected}");
        };
        check(Event::ToolsListChanged, r#"{"event":"tools_list_changed"}"#);
        check(
            Event::ResourceUpdated { uri: "file:///a".into() },
            r#"{"event":"resource_updated","uri":"file:///a"}"#,
        );
        check(
            Event::Acknowledged(SubscriptionFilter::new().tools()),
            r#"{"event":"acknowledged","notifications":{"toolsListChanged":true}}"#,
        );
        // Texts of a server that are JSON, and no `Value`.
        for result in [r#"{"a":1e400}"#, r#"{"a":"\ud83d"}"#, r#"{"\udc00":1}"#] {
            let task = format!(
                r#"{{"taskId":"t","status":"completed","createdAt":"2026-07-28T12:00:00Z","lastUpdatedAt":"2026-07-28T12:00:00Z","ttlMs":null,"result":{result}}}"#
            );
            let shown = text(&Event::Task(serde_json::from_str(&task).unwrap()));
            assert!(matches!(&shown, Ok(shown) if shown.contains(result)), "{result}");
        }
    }
}
