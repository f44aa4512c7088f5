//! A tree as a handler.

use crate::tree::{
    Ask, At, Form, Joined, Kind, Node, Raw, Said, Step, Stop, done, heard, letter, mix, together,
};
use antiphon::{
    Result as Outcome,
    server::{Answer, AskError, Ctx, StepError, Won},
};
use futures_util::{
    StreamExt as _,
    future::{join_all, try_join_all},
    stream::FuturesUnordered,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Debug, Deserialize, antiphon::Form)]
struct Pick {
    id: String,
    n: u8,
}

#[derive(Debug, Deserialize, antiphon::Form)]
struct Sure {
    id: String,
    ok: bool,
}

#[derive(Debug, Deserialize, antiphon::Form)]
struct Note {
    id: String,
    text: Option<String>,
}

/// One run of the body of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) path: String,
    pub(crate) key: String,
}

/// What came first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decided {
    Won(usize),
    Tried(Option<Stop>),
}

/// What is seen of the handler of one tree, on all legs.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) ran: Mutex<Vec<Ran>>,
    /// What should not be.
    pub(crate) wrong: Mutex<Vec<String>>,
}

/// What is seen of one leg.
#[derive(Default)]
pub(crate) struct LegSeen {
    pub(crate) decided: Mutex<BTreeMap<String, Decided>>,
}

/// What a branch of the handler has at hand.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) seen: Arc<Seen>,
    pub(crate) leg: Arc<LegSeen>,
    pub(crate) at: At,
}

impl Env {
    fn wrong(&self, what: String) {
        self.seen.wrong.lock().unwrap().push(what);
    }

    fn decided(&self, path: String, decided: Decided) {
        self.leg.decided.lock().unwrap().insert(path, decided);
    }

    fn at(&self, at: At) -> Self {
        Self { at, ..self.clone() }
    }
}

/// What a step comes to: it says whose it is.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    path: String,
    value: u64,
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<u64, Stop>> + Send + 'a>>;

/// Runs one node on what came before it.
pub(crate) fn run<'a>(ctx: &'a Ctx, node: &'a Node, env: Env, value: u64) -> Running<'a> {
    Box::pin(async move {
        match node {
            Node::Ask(it) => ask(ctx, it, &env, value).await,
            Node::Step(it) => step(ctx, it, &env, value).await,
            Node::Raw(it) => {
                raw(*it).await;
                Ok(mix("raw", "", value))
            }
            Node::Seq(nodes) => {
                let mut value = value;
                for node in nodes {
                    value = run(ctx, node, env.clone(), value).await?;
                }
                Ok(value)
            }
            Node::Join(joined, nodes) => {
                let all = branches(ctx, nodes, &env, value);
                together(match joined {
                    Joined::Ours => ctx.join_all(all).await,
                    Joined::Futures => join_all(all).await,
                    Joined::Unordered => unordered(all).await,
                })
            }
            Node::Try(name, nodes) => {
                let tried = try_join_all(branches(ctx, nodes, &env, value)).await;
                let path = env.at.path(letter(*name), *name);
                env.decided(format!("try {path}"), Decided::Tried(tried.as_ref().err().copied()));
                together(tried?.into_iter().map(Ok).collect())
            }
            Node::Select(name, nodes) => {
                let mut all = branches(ctx, nodes, &env, value);
                let number = env.at.number(*name);
                let (winner, result) = if all.len() == 3 {
                    let (c, b, a) = (all.pop().unwrap(), all.pop().unwrap(), all.pop().unwrap());
                    won(match number {
                        None => ctx.select(letter(*name), (a, b, c)).await,
                        Some(number) => ctx.select((letter(*name), number), (a, b, c)).await,
                    })
                } else {
                    let (b, a) = (all.pop().unwrap(), all.pop().unwrap());
                    match number {
                        None => match ctx.select(letter(*name), (a, b)).await {
                            Won::A(result) => (0, result),
                            Won::B(result) => (1, result),
                        },
                        Some(number) => match ctx.select((letter(*name), number), (a, b)).await {
                            Won::A(result) => (0, result),
                            Won::B(result) => (1, result),
                        },
                    }
                };
                let path = env.at.path(letter(*name), *name);
                env.decided(format!("select {path}"), Decided::Won(winner));
                Ok(mix("won", "", result? ^ winner as u64))
            }
            Node::Scope(name, node) => {
                let (scope, at) = env.at.scope(*name);
                let below = ctx.scope(scope);
                run(&below, node, env.at(at), value).await
            }
            Node::Loop { name, scoped, most, body } => {
                let mut value = value;
                for round in 0..*most {
                    let (scope, at) = env.at.looped(*name, *scoped, round);
                    value = match scope {
                        Some(scope) => {
                            let below = ctx.scope(scope);
                            run(&below, body, env.at(at), value).await?
                        }
                        None => run(ctx, body, env.at(at), value).await?,
                    };
                    if value.is_multiple_of(5) {
                        break;
                    }
                }
                Ok(value)
            }
            Node::If(yes, no) => {
                let node = if value.is_multiple_of(2) { yes } else { no };
                run(ctx, node, env, value).await
            }
            Node::Catch(node) => {
                let result = run(ctx, node, env, value).await;
                Ok(result.unwrap_or_else(|Stop(why)| mix("caught", "", why)))
            }
            Node::Helper(node) => helper(ctx, |ctx| run(ctx, node, env, value)).await,
        }
    })
}

/// Someone else's function, which knows nothing of questions.
async fn helper<'a, T>(ctx: &'a Ctx, call: impl FnOnce(&'a Ctx) -> Running<'a>) -> T
where
    T: From<Result<u64, Stop>>,
{
    call(ctx).await.into()
}

fn branches<'a>(ctx: &'a Ctx, nodes: &'a [Node], env: &Env, value: u64) -> Vec<Running<'a>> {
    let branch = |(n, node)| run(ctx, node, env.clone(), mix("branch", "", value ^ n));
    (0..).zip(nodes).map(branch).collect()
}

fn won<T>(won: Won<T, T, T>) -> (usize, T) {
    match won {
        Won::A(result) => (0, result),
        Won::B(result) => (1, result),
        Won::C(result) => (2, result),
    }
}

async fn unordered(all: Vec<Running<'_>>) -> Vec<Result<u64, Stop>> {
    let numbered = all.into_iter().enumerate().map(async |(n, running)| (n, running.await));
    let mut results: Vec<_> = numbered.collect::<FuturesUnordered<_>>().collect().await;
    results.sort_by_key(|(n, _)| *n);
    results.into_iter().map(|(_, result)| result).collect()
}

async fn raw(raw: Raw) {
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
        Raw::Sleeps(millis) => tokio::time::sleep(Duration::from_millis(u64::from(millis))).await,
    }
}

async fn ask(ctx: &Ctx, ask: &Ask, env: &Env, value: u64) -> Result<u64, Stop> {
    let path = ask.path(&env.at);
    let text = if ask.plain { "Go on?".to_owned() } else { format!("{path} after {value:x}?") };
    macro_rules! put {
        ($form:ty, |$it:ident| $n:expr) => {{
            let mut put = ctx.elicit::<$form>(text);
            if let Some(key) = ask.key() {
                put = put.key(key);
            }
            if let Some(number) = env.at.number(ask.name) {
                put = put.nth(number);
            }
            let said = |$it: $form| {
                if $it.id != path {
                    env.wrong(format!("`{path}` got the answer to `{}`", $it.id));
                }
                Said::Accept($n)
            };
            if ask.unwraps {
                match put.await {
                    Ok(it) => said(it),
                    Err(AskError::Declined { .. }) => Said::Decline,
                    Err(AskError::Cancelled { .. }) => Said::Cancel,
                    Err(other) => {
                        env.wrong(format!("`{path}`: {other}"));
                        Said::Cancel
                    }
                }
            } else {
                match put.outcome().await {
                    Ok(Answer::Accept(it)) => said(it),
                    Ok(Answer::Decline) => Said::Decline,
                    Ok(Answer::Cancel) => Said::Cancel,
                    Err(other) => {
                        env.wrong(format!("`{path}`: {other}"));
                        Said::Cancel
                    }
                }
            }
        }};
    }
    let said = match ask.form {
        Form::Pick => put!(Pick, |it| u64::from(it.n)),
        Form::Sure => put!(Sure, |it| u64::from(it.ok)),
        Form::Note => put!(Note, |it| it.text.map_or(0, |text| text.len() as u64)),
    };
    heard(said, &path, ask, value)
}

async fn step(ctx: &Ctx, step: &Step, env: &Env, value: u64) -> Result<u64, Stop> {
    let path = env.at.path(letter(step.name), step.name);
    let body = async |attempt: antiphon::server::Attempt| -> Outcome<Receipt> {
        let times = {
            let mut ran = env.seen.ran.lock().unwrap();
            ran.push(Ran { path: path.clone(), key: attempt.key().to_owned() });
            ran.iter().filter(|ran| ran.path == path).count()
        };
        if let Some(it) = step.raw {
            raw(it).await;
        }
        match step.kind {
            Kind::Fails => Err(StepError::new(path.clone()).code("no").data(value).into()),
            Kind::Flaky if times == 1 => Err(StepError::retry(std::fmt::Error)),
            _ => Ok(Receipt { path: path.clone(), value }),
        }
    };
    let number = env.at.number(step.name);
    let result = match (step.kind, number) {
        (Kind::Pinned, None) => ctx.step_with(letter(step.name), &value, body).await,
        (Kind::Pinned, Some(number)) => ctx.step_with((letter(step.name), number), &value, body).await,
        (_, None) => ctx.step(letter(step.name), body).await,
        (_, Some(number)) => ctx.step((letter(step.name), number), body).await,
    };
    let expected = match step.kind {
        Kind::Fails => Err(StepError::new(path.clone()).code("no").data(value)),
        _ => Ok(Receipt { path: path.clone(), value }),
    };
    if result != expected {
        env.wrong(format!("the step `{path}` should have come to {expected:?}, not {result:?}"));
    }
    done(&path, step, value)
}
