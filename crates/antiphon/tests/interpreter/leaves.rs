//! The questions, the steps and the waiting of a handler.

use crate::{
    branch::{End, Env, panic_quietly},
    reply::FORETOLD,
    stop::Stop,
    trace::{Chain, Crash, Link, Run, RunEnd},
    tree::{Ask, Form, Kind, Raw, Step, Text, letter},
    user::{UserAnswer, after_answer, after_step, mix},
};
use antiphon::{
    Result as Outcome,
    server::{Answer, AskError, Ctx, Retry, StepError, steps::Attempt},
};
use serde::{Deserialize, Serialize};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

#[derive(Debug, Deserialize, antiphon::Form)]
pub(crate) struct Pick {
    pub(crate) id: String,
    pub(crate) n: u8,
}

#[derive(Debug, Deserialize, antiphon::Form)]
pub(crate) struct Sure {
    pub(crate) id: String,
    pub(crate) ok: bool,
}

#[derive(Debug, Deserialize, antiphon::Form)]
pub(crate) struct Note {
    pub(crate) id: String,
    pub(crate) text: Option<String>,
}

/// The content of a form, of any kind.
pub(crate) trait TestForm {
    fn id(&self) -> &str;
    fn number(&self) -> u64;
}

impl TestForm for Pick {
    fn id(&self) -> &str {
        &self.id
    }

    fn number(&self) -> u64 {
        self.n.into()
    }
}

impl TestForm for Sure {
    fn id(&self) -> &str {
        &self.id
    }

    fn number(&self) -> u64 {
        self.ok.into()
    }
}

impl TestForm for Note {
    fn id(&self) -> &str {
        &self.id
    }

    fn number(&self) -> u64 {
        self.text.as_ref().map_or(0, |text| text.len() as u64)
    }
}

/// The result of a step, with the path of the step.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    path: String,
    value: u64,
}

/// Waits for what nobody records.
pub(crate) async fn raw(raw: Raw) {
    match raw {
        Raw::Yields(times) => {
            for _ in 0..times {
                tokio::task::yield_now().await;
            }
        }
        Raw::Task(yields) => {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            tokio::spawn(async move {
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
                let _ = sender.send(());
            });
            let _ = receiver.await;
        }
        Raw::Never => std::future::pending().await,
        Raw::Sleeps(millis) => tokio::time::sleep(Duration::from_millis(millis.into())).await,
    }
}

/// The words of a question, as they are now.
pub(crate) fn words(text: Text, path: &str, value: u64, env: &Env) -> String {
    match text {
        Text::Same if env.scene.says_path => format!("{path} goes on?"),
        Text::Same => "Go on?".to_owned(),
        Text::Own => format!("{path} after {value:x}?"),
        Text::World => {
            let version = env.scene.leg.world.load(Ordering::Relaxed);
            format!("{path} after {value:x}, list {version}?")
        }
    }
}

/// An answer as a number, which must be that of this question. One that a client sends before it sees the question is ignored, unless
/// the task asks it at that moment.
pub(crate) fn read<F: TestForm>(answer: Answer<F>, path: &str, env: &Env) -> UserAnswer {
    match answer {
        Answer::Accept(it) => {
            if it.id() == FORETOLD {
                env.scene.trace.is_foretold.store(true, Ordering::Relaxed);
            } else if it.id() != path {
                env.wrong(format!("`{path}` got the answer to `{}`", it.id()));
            }
            UserAnswer::Accept(it.number())
        }
        Answer::Decline => UserAnswer::Decline,
        Answer::Cancel => UserAnswer::Cancel,
    }
}

/// The chain behind one more answer, which is written down.
pub(crate) fn answered(path: &str, text: String, said: UserAnswer, env: &Env) -> Chain {
    let link = Link { text, said, before: Arc::clone(&env.chain) };
    env.scene.leg.answered.lock().unwrap().insert(path.to_owned(), link.clone());
    let mut chain = Arc::clone(&env.chain);
    Arc::make_mut(&mut chain).insert(path.to_owned(), link);
    chain
}

/// Awaits a question.
pub(crate) async fn ask(ctx: &Ctx, ask: &Ask, path: String, env: &Env, value: u64) -> End {
    let text = words(ask.text, &path, value, env);
    macro_rules! put {
        ($form:ty) => {{
            let mut put = ctx.elicit::<$form>(text.clone());
            if let Some(key) = ask.key() {
                put = put.key(key);
            }
            if let Some(number) = env.at.number(ask.name) {
                put = put.nth(number);
            }
            let answer = if ask.unwraps {
                match put.await {
                    Ok(it) => Ok(Answer::Accept(it)),
                    Err(AskError::Declined { .. }) => Ok(Answer::Decline),
                    Err(AskError::Cancelled { .. }) => Ok(Answer::Cancel),
                    Err(other) => Err(other),
                }
            } else {
                put.outcome().await
            };
            answer.map(|answer| read(answer, &path, env))
        }};
    }
    let said = match ask.form {
        Form::Pick => put!(Pick),
        Form::Sure => put!(Sure),
        Form::Note => put!(Note),
    };
    let said = said.unwrap_or_else(|other| {
        env.wrong(format!("`{path}`: {other}"));
        UserAnswer::Cancel
    });
    End { result: after_answer(said, &path, ask.unwraps, value), chain: answered(&path, text, said, env) }
}

/// The body of a step.
async fn body(step: &Step, path: &str, env: &Env, value: u64, attempt: Attempt) -> Outcome<Receipt> {
    let (leg, trace) = (&env.scene.leg, &env.scene.trace);
    env.alive().await;
    if leg.gone.load(Ordering::Relaxed) {
        env.wrong(format!("an attempt of `{path}` begins after the request was cancelled"));
    }
    if trace.has_received(path) {
        env.wrong(format!("an attempt of `{path}` begins after the handler received its end"));
    }
    env.acts();
    let times = trace.attempt(path);
    let at = {
        let mut runs = leg.runs.lock().unwrap();
        let (key, chain) = (attempt.key().to_owned(), Arc::clone(&env.chain));
        let crash = crash(step, env);
        runs.push(Run { path: path.to_owned(), key, chain, end: RunEnd::None, crash });
        runs.len() - 1
    };
    // With a store, some wait behind their effect.
    let waits_behind = env.scene.process.is_some() && mix("waits behind", path, 0).is_multiple_of(2);
    if let Some(it) = step.raw.filter(|_| !waits_behind) {
        raw(it).await;
        env.alive().await;
    }
    let (fails, panics) = match step.kind {
        Kind::Retried { fails, panics } => (fails, panics),
        Kind::Flaky { panics } => (1, panics),
        _ => (0, false),
    };
    let fails_now = times <= fails.into();
    leg.runs.lock().unwrap()[at].end = if fails_now { RunEnd::NoOutcome } else { RunEnd::Outcome };
    if !fails_now && step.kind != Kind::Fails {
        trace.has_effect(path);
    }
    if let Some(it) = step.raw.filter(|_| waits_behind) {
        raw(it).await;
        env.alive().await;
    }
    if fails_now && panics {
        panic_quietly();
    }
    match step.kind {
        _ if fails_now => Err(StepError::retry(std::fmt::Error)),
        Kind::Fails => Err(failure(path, value).into()),
        _ => Ok(Receipt { path: path.to_owned(), value }),
    }
}

/// What happens to a step that a crash has interrupted. An error is no effect that could be found.
fn crash(step: &Step, env: &Env) -> Crash {
    match step.reconciles {
        // The setting of the tool comes first.
        _ if env.scene.reruns => Crash::Reruns,
        true if step.kind == Kind::Fails => Crash::Reruns,
        true => Crash::Reconciled,
        false => Crash::Unresolved,
    }
}

fn failure(path: &str, value: u64) -> StepError {
    StepError::new(path).code("no").data(value)
}

/// Runs a step.
pub(crate) async fn step(ctx: &Ctx, step: &Step, env: &Env, value: u64) -> Result<u64, Stop> {
    let path = env.at.path(letter(step.name), step.name);
    let (key, number) = (letter(step.name), env.at.number(step.name));
    let run = async |attempt: Attempt| body(step, &path, env, value, attempt).await;
    let find = async |_| found(step, &path, env, value).await;
    macro_rules! result {
        ($step:expr) => {{
            let it = $step;
            if step.reconciles { it.reconcile(find).await } else { it.await }
        }};
    }
    let result = match (step.kind, number) {
        (Kind::Pinned, None) => result!(ctx.step_with(key, &value, run)),
        (Kind::Pinned, Some(number)) => result!(ctx.step_with((key, number), &value, run)),
        (Kind::Retried { fails, .. }, None) => result!(ctx.step_retry(key, retry(fails, env), run)),
        (Kind::Retried { fails, .. }, Some(number)) => {
            result!(ctx.step_retry((key, number), retry(fails, env), run))
        }
        (_, None) => result!(ctx.step(key, run)),
        (_, Some(number)) => result!(ctx.step((key, number), run)),
    };
    env.alive().await;
    if env.scene.process.is_some() {
        env.scene.trace.receives(&path);
    }
    if result.as_ref().is_err_and(|error| error.code.as_deref() == Some("cancelled")) {
        // The task was cancelled before.
        return Err(Stop(mix("cancelled", &path, 0)));
    }
    let expected = match step.kind {
        Kind::Fails => Err(failure(&path, value)),
        _ => Ok(Receipt { path: path.clone(), value }),
    };
    if result != expected {
        env.wrong(format!("the step `{path}` should have come to {expected:?}, not {result:?}"));
    }
    after_step(&path, step.kind, value)
}

/// Finds out, after a crash, if a step had its effect.
async fn found(step: &Step, path: &str, env: &Env, value: u64) -> Outcome<Option<Receipt>> {
    env.alive().await;
    if let Some(it) = step.raw {
        raw(it).await;
        env.alive().await;
    }
    Ok(env.scene.trace.had_effect(path).then(|| Receipt { path: path.to_owned(), value }))
}

/// A crash takes an attempt, too.
fn retry(fails: u8, env: &Env) -> Retry {
    Retry::times(u32::from(fails) + if env.scene.process.is_some() { 20 } else { 1 })
}
