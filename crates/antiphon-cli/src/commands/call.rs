//! `call`, `prompt`, `read` and `resume`.

use crate::{
    answers::Answers,
    args::{ArgumentArgs, CallArgs, TargetArgs},
    console,
    drive::{Start, drive},
    failure::{Exit, Failure},
    hear, live,
    observe::Legs,
    report::Outcome,
    show,
    target::Target,
};
use antiphon::client::{Call, Client, PendingCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{io, path::Path};

pub(super) fn tool(name: String, arguments: ArgumentArgs) -> Result<Call, Failure> {
    Call::tool(name, json(arguments)?).map_err(|error| Failure::usage(error.to_string()))
}

pub(super) fn prompt(name: String, arguments: ArgumentArgs) -> Result<Call, Failure> {
    Call::prompt(name, json(arguments)?).map_err(|error| Failure::usage(error.to_string()))
}

pub(super) fn resource(uri: String) -> Call {
    Call::resource(uri)
}

/// The text as it was written.
fn json(arguments: ArgumentArgs) -> Result<Box<RawValue>, Failure> {
    RawValue::from_string(arguments.arguments)
        .map_err(|fault| Failure::usage(format!("--args is no JSON: {fault}")))
}

/// Makes a call.
pub(super) async fn run(
    call: impl FnOnce() -> Result<Call, Failure>,
    how: CallArgs,
    target: &TargetArgs,
    tell: Option<fn(&str)>,
) -> Result<Exit, Failure> {
    let legs = Legs::new(tell);
    let start = call().and_then(|call| Ok((Start::New(call), Target::required(target)?)));
    finish(start, how, target, &legs).await
}

/// Goes on with a pending call.
pub(super) async fn resume(
    file: &Path,
    how: CallArgs,
    target: &TargetArgs,
    tell: Option<fn(&str)>,
) -> Result<Exit, Failure> {
    let legs = Legs::new(tell);
    let start = read_pending(file).and_then(|pending| {
        let way = match Target::given(target)? {
            Some(way) => way,
            None => Target::of_pending(&pending, target)?,
        };
        legs.add_rounds(pending.round());
        Ok((Start::Resume(pending), way))
    });
    finish(start, how, target, &legs).await
}

/// Drives the call and prints what came of it, whatever it was.
async fn finish(
    start: Result<(Start, Target), Failure>,
    how: CallArgs,
    target: &TargetArgs,
    legs: &Legs,
) -> Result<Exit, Failure> {
    let outcome = match (start, Answers::new(how.answers.answers)) {
        (Ok((start, way)), Ok(answers)) => {
            let answers = answers.of_client(how.client);
            let is_child = way.is_child();
            let client = way.connect(target.timeout, target.mode.clone(), legs, |builder| {
                let builder = hear::attach(builder, how.log_level).declare(answers.asks());
                // A call that stops at its next question cannot do so in a session, where the question waits.
                if how.once { builder } else { live::attach(builder, &answers) }
            });
            match client {
                Ok(client) => connected(start, &client, is_child, answers, how.once).await,
                Err(failure) => Outcome::Failed(failure),
            }
        }
        (Err(failure), _) | (_, Err(failure)) => Outcome::Failed(failure),
    };
    if how.json {
        outcome.print_json(legs.rounds());
    } else {
        outcome.print();
    }
    Ok(outcome.exit())
}

async fn connected(
    start: Start,
    client: &Client,
    is_child: bool,
    mut answers: Answers,
    once: bool,
) -> Outcome {
    let start = match start {
        Start::Resume(pending) => Start::Resume(redirected(pending, &client.server().target)),
        new => new,
    };
    let outcome = drive(client, start, &mut answers, once).await;
    client.close().await;
    answers.tell_unused();
    if let Outcome::Pending { missing: None, .. } = &outcome {
        console::note("The pending call holds the state of the call: keep it as you keep a password.");
        if is_child {
            console::note(
                "It dies with the server that was started here, unless that has a key file and is started again with it.",
            );
        }
    }
    outcome
}

/// State and answers go where the command line says, which is said aloud.
fn redirected(mut pending: PendingCall, target: &str) -> PendingCall {
    if pending.server().target != target {
        let (from, to) = (show::line(&pending.server().target), show::line(target));
        console::note(&format!("The call began at {from}; its state and answers now go to {to}."));
        pending.retarget(target);
    }
    pending
}

/// What `--once` printed, or the object that `--json` put around it.
#[derive(Deserialize)]
struct Printed {
    pending: PendingCall,
}

fn read_pending(file: &Path) -> Result<PendingCall, Failure> {
    let (name, text) = if file == Path::new("-") {
        ("standard input".into(), io::read_to_string(io::stdin()))
    } else {
        (file.display().to_string(), std::fs::read_to_string(file))
    };
    let text = text.map_err(|fault| Failure::usage(format!("{name}: {fault}")))?;
    // The reason is that of the plain form; it may quote names, never state.
    serde_json::from_str(&text).or_else(|fault| match serde_json::from_str::<Printed>(&text) {
        Ok(printed) => Ok(printed.pending),
        Err(_) => Err(Failure::usage(format!("{name} holds no pending call: {fault}"))),
    })
}
