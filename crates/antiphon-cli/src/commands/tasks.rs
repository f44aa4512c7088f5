//! `tasks`: the tasks in the store of a server, for its operator.

use crate::{
    args::{TaskStoreArgs, TasksCommand},
    console,
    failure::{Exit, Failure},
    store_file,
};
use antiphon::store::tasks::{TaskState, TaskSummary};
use serde_json::{Value, json};
use std::time::Duration;

/// The number of claims above the number of messages from which on a task counts as stuck.
const IDLE_CLAIMS: u64 = 10;

pub(super) async fn tasks(command: TasksCommand) -> Result<Exit, Failure> {
    match command {
        TasksCommand::Ls { stuck, limit, store } => list(stuck, limit, &store).await,
        TasksCommand::Show { task, store } => show(&task, &store).await,
    }
}

async fn list(stuck: Option<u64>, limit: usize, store: &TaskStoreArgs) -> Result<Exit, Failure> {
    let mut tasks = read(store).await?;
    if let Some(seconds) = stuck {
        tasks.retain(|task| is_stuck(task, Duration::from_secs(seconds)));
    }
    let left_out = tasks.len().saturating_sub(limit);
    tasks.truncate(limit);
    if store.json {
        let tasks: Vec<Value> = tasks.iter().map(to_json).collect();
        // own: made here, of numbers and texts
        console::out_json(&json!({"tasks": tasks, "left_out": left_out}).to_string());
        return Ok(Exit::Done);
    }
    if tasks.is_empty() {
        console::hint(if stuck.is_some() { "no task is stuck" } else { "the store has no task" });
        return Ok(Exit::Done);
    }
    console::out(&line(["TASK", "STATE", "AGE", "UNCHANGED", "REST", "MESSAGES", "BYTES", "CLAIMS"]));
    for task in &tasks {
        let (age, unchanged) = (time(task.age), time(task.unchanged_for));
        let rest = task.rest.map_or_else(|| "-".to_owned(), time);
        let (messages, bytes) = (task.messages.to_string(), task.snapshot_bytes.to_string());
        let (id, claims) = (task.task.to_string(), task.claims.to_string());
        let columns = [&id, state(task), &age, &unchanged, &rest, &messages, &bytes, &claims];
        console::out(&line(columns));
    }
    if left_out > 0 {
        console::hint(&format!("{left_out} more tasks: --limit"));
    }
    Ok(Exit::Done)
}

async fn show(id: &str, store: &TaskStoreArgs) -> Result<Exit, Failure> {
    let mut found = read(store).await?;
    found.retain(|task| task.task.to_string().starts_with(id));
    let task = match &found[..] {
        [task] => task,
        [] => return Err(Failure::usage(format!("the store has no task {}", console::line(id)))),
        more => {
            return Err(Failure::usage(format!("{} tasks begin with {}", more.len(), console::line(id))));
        }
    };
    if store.json {
        console::out_json(&to_json(task).to_string());
        return Ok(Exit::Done);
    }
    let rest = task.rest.map_or_else(|| "no limit".to_owned(), time);
    for (name, value) in [
        ("task", task.task.to_string()),
        ("state", state(task).to_owned()),
        ("age", time(task.age)),
        ("unchanged for", time(task.unchanged_for)),
        ("rest", rest),
        ("messages", format!("{} of {}", task.messages, task.received)),
        ("bytes", task.snapshot_bytes.to_string()),
        ("claims", task.claims.to_string()),
    ] {
        console::out(&format!("{name}: {value}"));
    }
    Ok(Exit::Done)
}

async fn read(store: &TaskStoreArgs) -> Result<Vec<TaskSummary>, Failure> {
    let tasks = store_file::open_tasks(&store.file).await?;
    tasks.list(usize::MAX).await.map_err(|error| Failure::protocol("store", error.to_string()))
}

/// Returns true if a task needs the operator.
fn is_stuck(task: &TaskSummary, after: Duration) -> bool {
    let is_due = task.state == TaskState::Due && task.unchanged_for >= after;
    // A task is claimed once for each message, and a few times more: when it begins, and when its process stops.
    let idle = u64::try_from(task.claims).unwrap_or(0).saturating_sub(task.received);
    is_due || task.state != TaskState::Final && idle >= IDLE_CLAIMS
}

fn to_json(task: &TaskSummary) -> Value {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // own: numbers and texts
    json!({
        "task": task.task.to_string(),
        "state": state(task),
        "age": millis(task.age),
        "unchanged": millis(task.unchanged_for),
        "rest": task.rest.map(millis),
        "messages": task.messages,
        "received": task.received,
        "bytes": task.snapshot_bytes,
        "claims": task.claims,
    })
}

fn state(task: &TaskSummary) -> &'static str {
    match task.state {
        TaskState::Held => "held",
        TaskState::Due => "due",
        TaskState::Waits => "waits",
        TaskState::Final => "final",
        _ => "other",
    }
}

fn line(columns: [&str; 8]) -> String {
    let [task, state, age, unchanged, rest, messages, bytes, claims] = columns;
    format!(
        "{task:<32}  {state:<5}  {age:>5}  {unchanged:>9}  {rest:>5}  {messages:>8}  {bytes:>8}  {claims:>6}"
    )
}

/// Returns a time in its largest unit, rounded down.
fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::time;
    use std::time::Duration;

    #[test]
    fn a_time_has_one_unit() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m"),
            (3600, "1h"),
            (172_799, "47h"),
            (172_800, "2d"),
        ] {
            assert_eq!(time(Duration::from_secs(seconds)), text);
        }
    }
}
