//! `task`: gets, answers, cancels and follows a task. `tasks`: the tasks in the store of a server, for its operator.

use crate::{
    answer_flags::AnswerFlags,
    args::{ClientArgs, TargetArgs, TaskArgs, TaskCommand, TaskStoreArgs, TasksCommand},
    ask,
    commands::list::print_failure,
    console,
    drive::{LegObserver, follow},
    failure::{Exit, Failure},
    outcome::{self, Outcome, Saver},
    store_file,
    target::Target,
};
use antiphon::{
    client::{
        Client,
        tasks::{ClientTask, TaskHandle},
    },
    store::tasks::{TaskState, TaskSummary},
    wire::{
        CallToolResult,
        tasks::{DetailedTask, TaskDetail},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) async fn task(command: TaskCommand, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    match command {
        TaskCommand::Get(args) => {
            let (json, answers) = (args.json, no_answers()?);
            let work = with_task(args, &answers, log, async |mut task| {
                let state = task.get().await?;
                if json {
                    outcome::print_result_json(&state)
                } else {
                    print(&state)?
                }
                Ok(Exit::Done)
            });
            print_failure(json, work.await)
        }
        TaskCommand::Cancel(args) => {
            let (json, answers) = (args.json, no_answers()?);
            let work = with_task(args, &answers, log, async |task| {
                task.cancel().await?;
                if json {
                    outcome::print_result_json(&json!({}));
                } else {
                    console::hint("the server acknowledged the request to cancel the task");
                }
                Ok(Exit::Done)
            });
            print_failure(json, work.await)
        }
        TaskCommand::Answer { answers, client, task: args } => {
            let json = args.json;
            let answers = AnswerFlags::new(answers.answers)?.with_client_answers(client);
            let work = with_task(args, &answers, log, async |task| answer(task, &answers, json).await);
            print_failure(json, work.await)
        }
        TaskCommand::Watch { answers, client, save, task: args } => {
            let saver = save.map(Saver::new).transpose()?;
            let answers = AnswerFlags::new(answers.answers)?.with_client_answers(client);
            watch(args, &answers, saver.as_ref(), log).await
        }
    }
}

fn no_answers() -> Result<AnswerFlags, Failure> {
    Ok(AnswerFlags::new(Vec::new())?.with_client_answers(ClientArgs::default()))
}

/// Sends the available answers to the open questions.
async fn answer(mut task: ClientTask, answers: &AnswerFlags, as_json: bool) -> Result<Exit, Failure> {
    task.get().await?;
    // A prompt blocks this thread until the person answers. Other tasks continue on other threads.
    let found = tokio::task::block_in_place(|| ask::answer_task(&task, answers))?;
    let keys: Vec<String> = found.answers.iter().map(|(key, _)| key.to_owned()).collect();
    if !keys.is_empty() {
        task.answer_all(&found.answers).await?;
    }
    answers.warn_unused();
    match found.missing {
        Some(missing) if keys.is_empty() => return Err(Failure::unanswered(missing)),
        Some(missing) => console::hint(&missing),
        None if keys.is_empty() => console::hint("the task has no open question"),
        None => {}
    }
    if as_json {
        // own: the keys are texts
        outcome::print_result_json(&json!({ "answered": keys }));
    } else {
        keys.iter().for_each(|key| console::out(&format!("answered {}", console::line(key))));
    }
    Ok(Exit::Done)
}

async fn watch(
    args: TaskArgs,
    answers: &AnswerFlags,
    saver: Option<&Saver>,
    log: Option<fn(&str)>,
) -> Result<Exit, Failure> {
    let json = args.json;
    let mut outcome = None;
    let work = with_task(args, answers, log, async |task| {
        outcome = Some(follow(task, answers).await?);
        Ok(Exit::Done)
    });
    let ended = work.await;
    let outcome = match (ended, outcome) {
        (Err(failure), _) => Outcome::Failed(failure),
        (Ok(exit), None) => return Ok(exit),
        (Ok(_), Some(outcome)) => outcome,
    };
    answers.warn_unused();
    if json {
        saver.iter().for_each(|saver| outcome.save(saver));
        outcome.print_json(0);
    } else {
        outcome.print(saver);
    }
    Ok(if saver.is_some_and(Saver::has_failed) { Exit::Protocol } else { outcome.exit() })
}

/// Connects to the server of the task, runs `work`, and closes the connection.
async fn with_task(
    args: TaskArgs,
    answers: &AnswerFlags,
    log: Option<fn(&str)>,
    work: impl AsyncFnOnce(ClientTask) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let stored = args.task.strip_prefix('@').map(read_handle).transpose()?;
    let server = server_of(stored.as_ref(), &args.target)?;
    let client = server.connect(&args.target.connection, &LegObserver::new(log), |builder| {
        let builder = console::attach(builder, None).declare(answers.asks()).draft_tasks(args.draft_tasks);
        ask::attach(builder, answers)
    })?;
    let exit = work(task_of(&client, stored, args.task)).await;
    client.close().await;
    exit
}

fn server_of(stored: Option<&TaskHandle>, args: &TargetArgs) -> Result<Target, Failure> {
    match (Target::given(args)?, stored) {
        (Some(server), _) => Ok(server),
        (None, Some(handle)) => Target::of_stored(&handle.server().target, "task", args),
        (None, None) => Target::required(args),
    }
}

fn task_of(client: &Client, stored: Option<TaskHandle>, id: String) -> ClientTask {
    let Some(mut handle) = stored else { return client.attach(id) };
    let target = client.server().target;
    if handle.server().target != target {
        let (from, to) = (console::line(&handle.server().target), console::line(&target));
        console::hint(&format!("The task began at {from}; its id and answers now go to {to}."));
        handle.retarget(target);
    }
    client.task(handle)
}

/// The object that `call --detach --json` prints around a handle.
#[derive(Deserialize)]
struct JsonOutput {
    task: TaskHandle,
}

fn read_handle(file: &str) -> Result<TaskHandle, Failure> {
    let text = std::fs::read_to_string(file).map_err(|fault| Failure::usage(format!("{file}: {fault}")))?;
    // The error describes the plain form. It may contain names, but no id.
    serde_json::from_str(&text).or_else(|fault| match serde_json::from_str::<JsonOutput>(&text) {
        Ok(printed) => Ok(printed.task),
        Err(_) => Err(Failure::usage(format!("{file} contains no task: {fault}"))),
    })
}

/// Prints the state of a task for a person. A result that is none of a tool is printed as it is, and is a failure, as it is at the end
/// of a call.
fn print(state: &DetailedTask) -> Result<(), Failure> {
    let message = state.task.status_message.as_deref().map(|text| format!(": {}", console::line(text)));
    console::out(&format!("{}{}", state.task.status, message.unwrap_or_default()));
    match &state.detail {
        TaskDetail::None => {}
        TaskDetail::InputRequests(open) => {
            for (key, ask) in open.iter() {
                console::out(&format!("asks {}: {}", console::line(key), ask::summary(ask)));
            }
        }
        TaskDetail::Result(result) => match CallToolResult::read_final(result) {
            Ok(result) => outcome::print_tool_result(result),
            Err(fault) => {
                console::out_json(result.get());
                let fault = format!("the task has no result of a tool: {fault}");
                return Err(Failure::protocol("invalid_result", fault));
            }
        },
        TaskDetail::Error(error) => console::out(&console::line(&error.to_string())),
    }
    Ok(())
}

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
    use super::*;
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
