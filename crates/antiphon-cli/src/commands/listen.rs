//! `listen`: prints one line for each change.

use super::query::{print_failure, with_client};
use crate::{
    args::{ClientArgs, ListenArgs, ListenTo},
    console,
    failure::{Exit, Failure},
    sanitize,
};
use antiphon::{
    client::{ReconnectPolicy, Subscription, SubscriptionEvent as Event},
    wire::SubscriptionFilter,
};
use serde_json::{Value, json};

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
        let printed = if as_json {
            console::try_out_json(&object(&event).to_string())
        } else {
            console::try_out(&line(&event))
        };
        if printed.is_err() {
            return Ok(Exit::Done);
        }
    }
    console::hint("the server ended the subscription");
    Ok(Exit::Done)
}

fn filter(to: ListenTo) -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::new();
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
    let tasks = filter.task_ids.iter().flatten().map(|id| format!("task {}", sanitize::line(id)));
    lists.chain(uris.map(|uri| format!("resource {}", sanitize::line(uri)))).chain(tasks).collect()
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
        Event::ResourceUpdated { uri } => format!("resource updated {}", sanitize::line(uri)),
        Event::Task(state) => {
            let message =
                state.task.status_message.as_deref().map(|text| format!(": {}", sanitize::line(text)));
            let id = sanitize::line(&state.task.task_id);
            format!("task {id} {}{}", state.task.status, message.unwrap_or_default())
        }
        _ => "something changed".to_owned(),
    }
}

fn object(event: &Event) -> Value {
    match event {
        Event::Acknowledged(agreed) => json!({"event": "acknowledged", "notifications": agreed}),
        Event::Closed => json!({"event": "closed"}),
        Event::ToolsListChanged => json!({"event": "tools_list_changed"}),
        Event::PromptsListChanged => json!({"event": "prompts_list_changed"}),
        Event::ResourcesListChanged => json!({"event": "resources_list_changed"}),
        Event::ResourceUpdated { uri } => json!({"event": "resource_updated", "uri": uri}),
        Event::Task(state) => json!({"event": "task", "task": state}),
        _ => json!({"event": "other"}),
    }
}

/// Resolves at Ctrl-C.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler, the signal ends the process.
        std::future::pending().await
    }
}
