//! `calls`: one call for each line of standard input, over one connection.

use super::call::{page_wait, with_wait};
use crate::{
    answer_flags::AnswerFlags,
    args::{AnswerArgs, ClientArgs, TargetArgs, WaitArgs},
    drive::{Driving, Start, drive},
    failure::{Exit, Failure},
    leg_observer::LegObserver,
    notifications,
    outcome::Outcome,
    session_questions,
    target::Target,
};
use antiphon::{
    client::{Call, Client},
    wire::LogLevel,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io;

/// A line of the input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    tool: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
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
    let attached = answers.clone();
    let client =
        Target::required(target)?.connect(target.timeout, target.mode.clone(), &legs, |builder| {
            let builder = notifications::attach_log(builder, level);
            let builder = with_wait(builder, target.timeout, wait.limit()).declare(attached.asks());
            session_questions::attach(builder, &attached)
        })?;
    let (wait, page_wait) = (wait.limit(), page_wait(target.timeout, wait.limit()));
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
        let outcome = match call(&line) {
            Ok(call) => drive(client, Start::New(call), answers, driving).await,
            Err(failure) => Outcome::Failed(failure),
        };
        outcome.print_json(legs.rounds() - before);
        if exit == Exit::Done {
            exit = outcome.exit();
        }
    }
}

fn call(line: &str) -> Result<Call, Failure> {
    let CallLine { tool, arguments } = serde_json::from_str(line).map_err(|fault| {
        Failure::usage(format!("a line must be {{\"tool\": NAME, \"arguments\": {{..}}}}: {fault}"))
    })?;
    let call = match arguments {
        Some(arguments) => Call::tool(tool, arguments),
        None => Call::tool(tool, ()),
    };
    call.map_err(|error| Failure::usage(error.to_string()))
}
