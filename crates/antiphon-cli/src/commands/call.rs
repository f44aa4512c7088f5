//! `call`, `prompt`, `read`, `resume`, and `calls` with one call for each line of standard input.

use crate::{
    answer_flags::AnswerFlags,
    args::{AnswerArgs, CallArgs, CallTaskArgs, ClientArgs, ConnectionArgs, TargetArgs, WaitArgs},
    ask, console,
    drive::{Driving, LegObserver, Start, drive},
    failure::{Exit, Failure},
    outcome::{Outcome, PROTECT, Saver},
    target::Target,
};
use antiphon::{
    client::{Call, Client, ClientBuilder, PendingCall, tasks::TaskForm},
    wire::LogLevel,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{io, path::Path, time::Duration};

/// Makes a call.
pub(super) async fn run(
    start: Result<(Start, TargetArgs), Failure>,
    (call_args, task): (CallArgs, CallTaskArgs),
    log: Option<fn(&str)>,
) -> Result<Exit, Failure> {
    let legs = LegObserver::new(log);
    let start = start.and_then(|(start, target)| {
        let server = Target::required(&target)?;
        Ok((start, server, target.connection))
    });
    finish(start, (call_args, task), &legs).await
}

/// Continues a pending call.
pub(super) async fn resume(
    file: &Path,
    call_args: CallArgs,
    target: TargetArgs,
    log: Option<fn(&str)>,
) -> Result<Exit, Failure> {
    let legs = LegObserver::new(log);
    let start = read_pending(file).and_then(|pending| {
        let server = match Target::given(&target)? {
            Some(server) => server,
            None => Target::of_stored(&pending.server().target, "pending call", &target)?,
        };
        legs.add_rounds(pending.round());
        Ok((Start::Resume(pending), server, target.connection))
    });
    finish(start, (call_args, CallTaskArgs::default()), &legs).await
}

/// Drives the call and prints its outcome, also a failure.
async fn finish(
    start: Result<(Start, Target, ConnectionArgs), Failure>,
    (call_args, task): (CallArgs, CallTaskArgs),
    legs: &LegObserver,
) -> Result<Exit, Failure> {
    let wait = call_args.wait.limit();
    let saver = call_args.save.map(Saver::new).transpose();
    let mut saves = None;
    let prepared = start.and_then(|start| {
        saves = saver?;
        Ok((start, AnswerFlags::new(call_args.answers.answers)?))
    });
    let outcome = match prepared {
        Ok(((start, server, connection), answers)) => {
            let answers = answers.with_client_answers(call_args.client);
            let is_child = server.is_child();
            let client = server.connect(&connection, legs, |builder| {
                let builder = task.attach(console::attach(builder, call_args.log_level));
                let builder = with_wait(builder, connection.timeout, wait).declare(answers.asks());
                // With `--once` the call cannot be in a session, where a question would wait.
                if call_args.once { builder } else { ask::attach(builder, &answers) }
            });
            match client {
                Ok(client) => {
                    let (once, detach) = (call_args.once, task.detach);
                    let page_wait = page_wait(connection.timeout, wait);
                    let driving = Driving { once, detach, wait, page_wait };
                    connected(start, &client, is_child, answers, driving).await
                }
                Err(failure) => Outcome::Failed(failure),
            }
        }
        Err(failure) => Outcome::Failed(failure),
    };
    outcome.note_unchecked();
    if call_args.json {
        saves.iter().for_each(|saver| outcome.save(saver));
        outcome.print_json(legs.rounds());
    } else {
        outcome.print(saves.as_ref());
    }
    Ok(if saves.is_some_and(|saver| saver.has_failed()) { Exit::Protocol } else { outcome.exit() })
}

/// Limits the time of a server that only answers "not yet".
fn with_wait(builder: ClientBuilder, timeout: u64, wait: Duration) -> ClientBuilder {
    builder.state_only_limits(u32::MAX, wait).url_retry_interval(page_wait(timeout, wait))
}

/// Returns the time to wait for the server's report that required pages are finished.
pub(super) fn page_wait(timeout: u64, wait: Duration) -> Duration {
    let timeout = Duration::from_secs(timeout);
    // A person at the terminal may need more time for a page.
    if console::has_terminal() { timeout } else { wait.min(timeout) }
}

async fn connected(
    start: Start,
    client: &Client,
    is_child: bool,
    mut answers: AnswerFlags,
    driving: Driving,
) -> Outcome {
    let start = match start {
        Start::Resume(pending) => Start::Resume(redirected(pending, &client.server().target)),
        new => new,
    };
    let outcome = drive(client, start, &mut answers, driving).await;
    client.close().await;
    answers.warn_unused();
    if let Outcome::Pending { missing: None, .. } = &outcome {
        console::hint(PROTECT);
        if is_child {
            console::hint(
                "It becomes invalid when the server started here ends, unless that server has a key file and is started again with it.",
            );
        }
    }
    if let Outcome::Task { handle, .. } = &outcome {
        if handle.form() == TaskForm::Session {
            console::hint(
                "The task was made in a session, which has ended: not every server finds it again.",
            );
        }
        console::hint("The id of the task may be all that is needed to read it: protect it like a password.");
    }
    outcome
}

/// Sets the server of the pending call to the one on the command line, and prints a note if it changes.
fn redirected(mut pending: PendingCall, target: &str) -> PendingCall {
    if pending.server().target != target {
        let (from, to) = (console::line(&pending.server().target), console::line(target));
        console::hint(&format!("The call began at {from}; its state and answers now go to {to}."));
        pending.retarget(target);
    }
    pending
}

/// The object that `--json` prints around a pending call.
#[derive(Deserialize)]
struct JsonOutput {
    pending: PendingCall,
}

fn read_pending(file: &Path) -> Result<PendingCall, Failure> {
    let (name, text) = if file == Path::new("-") {
        ("standard input".into(), io::read_to_string(io::stdin()))
    } else {
        (file.display().to_string(), std::fs::read_to_string(file))
    };
    let text = text.map_err(|fault| Failure::usage(format!("{name}: {fault}")))?;
    // The error describes the plain form. It may contain names, but no state.
    serde_json::from_str(&text).or_else(|fault| match serde_json::from_str::<JsonOutput>(&text) {
        Ok(printed) => Ok(printed.pending),
        Err(_) => Err(Failure::usage(format!("{name} contains no pending call: {fault}"))),
    })
}

// `calls`: one call for each line of standard input, over one connection.

/// A line of the input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    tool: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
    #[serde(default)]
    answers: Vec<String>,
}

pub(super) async fn calls(
    answers: AnswerArgs,
    client: ClientArgs,
    (wait, level): (WaitArgs, Option<LogLevel>),
    target: &TargetArgs,
    log: Option<fn(&str)>,
) -> Result<Exit, Failure> {
    let legs = LegObserver::new(log);
    let mut answers = AnswerFlags::new(answers.answers)?.with_client_answers(client);
    let (attached, timeout) = (answers.clone(), target.connection.timeout);
    let client = Target::required(target)?.connect(&target.connection, &legs, |builder| {
        let builder = console::attach_log(builder, level);
        let builder = with_wait(builder, timeout, wait.limit()).declare(attached.asks());
        ask::attach(builder, &attached)
    })?;
    let (wait, page_wait) = (wait.limit(), page_wait(timeout, wait.limit()));
    let driving = Driving { once: false, detach: false, wait, page_wait };
    let exit = each_line(&client, &legs, &mut answers, driving).await;
    client.close().await;
    answers.warn_unused();
    exit
}

async fn each_line(
    client: &Client,
    legs: &LegObserver,
    answers: &mut AnswerFlags,
    driving: Driving,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    loop {
        // Reading blocks this thread. The tasks of the connection continue on other threads.
        let mut line = String::new();
        let read = tokio::task::block_in_place(|| io::stdin().read_line(&mut line));
        if read.map_err(|fault| Failure::io("standard input", &fault))? == 0 {
            return Ok(exit);
        }
        if line.trim().is_empty() {
            continue;
        }
        let before = legs.rounds();
        let call = call(&line).and_then(|(call, given)| {
            answers.set_for_call(given)?;
            Ok(call)
        });
        let outcome = match call {
            Ok(call) => drive(client, Start::New(call), answers, driving).await,
            Err(failure) => Outcome::Failed(failure),
        };
        outcome.print_json(legs.rounds() - before);
        if exit == Exit::Done {
            exit = outcome.exit();
        }
    }
}

fn call(line: &str) -> Result<(Call, Vec<String>), Failure> {
    let CallLine { tool, arguments, answers } = serde_json::from_str(line).map_err(|fault| {
        Failure::usage(format!(
            "a line must be {{\"tool\": NAME, \"arguments\": {{..}}, \"answers\": [..]}}: {fault}"
        ))
    })?;
    let call = match arguments {
        Some(arguments) => Call::tool(tool, arguments),
        None => Call::tool(tool, ()),
    };
    call.map(|call| (call, answers)).map_err(|error| Failure::usage(error.to_string()))
}
