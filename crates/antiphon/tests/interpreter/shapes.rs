//! The tools that run programs, and the instances that offer them.

use crate::{
    branch::{End, Env},
    handler::{all_of, run},
    leaves::{Note, Pick, Sure, answered, read, words},
    stop::Stop,
    trace::{Scene, counted},
    tree::{Ask, BranchPosition, Form, Program, Stage},
    user::{UserAnswer, after_answer, in_words},
};
use antiphon::{
    Result as Outcome, resolver,
    seal::{KeyRing, SecretKey},
    server::{
        Ask as Put, Ctx, Limits, NoArguments, Reply, Server, ServerBuilder, Tool, asks::InputRequired,
        operations::ReplayCheck,
    },
    store::{MemoryStore, StoreClock, calls::Micros},
    tool,
    wire::AskSupport,
};
use serde::{Deserialize, Serialize};
use std::{sync::LazyLock, time::Duration};

/// The instances that a call is sent to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ServerKind {
    /// Many state-only results in one call.
    Usual,
    /// The default limit of state-only results.
    Small,
    /// Each round is replayed before it leaves, and must come to the same.
    Checked,
    /// A question may be asked [`TIMES_ASKED`] times without an answer that fits.
    Strict,
}

/// The limit of [`ServerKind::Strict`].
pub(crate) const TIMES_ASKED: u8 = 3;

type Instances = LazyLock<Vec<Server>>;

/// Instances that share nothing but their keys.
static USUAL: Instances = LazyLock::new(|| (0..3).map(|_| server(ServerKind::Usual, |it| it)).collect());
static SMALL: Instances = LazyLock::new(|| (0..3).map(|_| server(ServerKind::Small, |it| it)).collect());
static CHECKED: Instances = LazyLock::new(|| (0..3).map(|_| server(ServerKind::Checked, |it| it)).collect());
static STRICT: Instances = LazyLock::new(|| (0..3).map(|_| server(ServerKind::Strict, |it| it)).collect());

/// The nth instance.
pub(crate) fn instance(number: usize, kind: ServerKind) -> &'static Server {
    let servers = match kind {
        ServerKind::Usual => &USUAL,
        ServerKind::Small => &SMALL,
        ServerKind::Checked => &CHECKED,
        ServerKind::Strict => &STRICT,
    };
    &servers[number % servers.len()]
}

/// An instance with a store of its own, which stores each step ahead.
pub(crate) fn instance_with_store(kind: ServerKind) -> Server {
    let begun = tokio::time::Instant::now();
    let clock = StoreClock::from_fn(move || Micros::new(1_800_000_000_000_000).after(begun.elapsed()));
    let store = MemoryStore::new().clock(clock);
    server(kind, |builder| builder.store(store).single_instance(true).write_ahead(true))
}

/// The tool that runs such a program.
pub(crate) fn tool_of(program: &Program) -> &'static str {
    match program {
        Program::Awaits(_) => "awaits",
        Program::ByHand(..) => "by_hand",
        Program::Resolved(..) => "resolved",
    }
}

fn server(kind: ServerKind, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    let limits = Limits::default()
        .legs(1000)
        .state_only_legs(if kind == ServerKind::Small { 2 } else { 200 })
        // Elsewhere a text may change, and an answer be missing, as often as the client likes.
        .times_asked(if kind == ServerKind::Strict { TIMES_ASKED } else { 100 })
        .sessions(1_000_000)
        .handlers(1_000_000)
        .session_handlers(1_000_000)
        .handler_timeout(Duration::from_secs(300));
    let awaits = Tool::new("awaits", async |ctx: &Ctx, _: NoArguments| {
        let scene = Scene::of(ctx);
        let Program::Awaits(node) = &*scene.program else { return "another tool's".to_owned() };
        let end = counted(&scene.trace, run(ctx, node, Env::new(scene.clone()), 0)).await;
        end.map_or_else(spins, |end| in_words(end.result))
    });
    let by_hand = Tool::new("by_hand", async |ctx: &Ctx, _: NoArguments| {
        let scene = Scene::of(ctx);
        let reply = counted(&scene.trace, by_hand(ctx, Env::new(scene.clone()))).await;
        reply.unwrap_or_else(|| Reply::Complete(spins()))
    });
    let ring = KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap();
    let builder = Server::builder("programs", "1")
        .tool(awaits.needs(AskSupport::FORM))
        .tool(by_hand.needs(AskSupport::FORM))
        .tool(resolved)
        .keys(ring)
        .limits(limits)
        .replay_check(if kind == ServerKind::Checked { ReplayCheck::Always } else { ReplayCheck::Off })
        .on_replay_fault(|fault| Scene::here().trace.wrong(format!("when it is replayed: {fault}")));
    change(builder).build().unwrap()
}

fn spins() -> String {
    "it spins".to_owned()
}

/// A handler that returns its questions, and awaits before and behind them.
async fn by_hand(ctx: &Ctx, env: Env) -> Reply<String> {
    let scene = env.scene.clone();
    let Program::ByHand(stages, last) = &*scene.program else { unreachable!("another tool's") };
    let mut kept: Vec<Vec<StoredAnswer>> = match ctx.by_hand().state_as() {
        Ok(kept) => kept.unwrap_or_default(),
        Err(error) => {
            env.wrong(format!("the state cannot be read: {error:?}"));
            return Reply::Complete("no state".to_owned());
        }
    };
    let (mut env, mut value) = (env, 0);
    for (number, stage) in stages.iter().enumerate() {
        let end = run(ctx, &stage.before, env.clone(), value).await;
        value = match end.result {
            Ok(value) => value,
            Err(stop) => return Reply::Complete(stop.to_string()),
        };
        env = env.after(end.chain);
        if kept.len() <= number {
            let asks: Vec<(String, String, Ask)> = asks_of(number, stage, value, &env);
            match asks.iter().map(|(path, text, ask)| given(ctx, path, text, ask.form, &env)).collect() {
                Some(answers) => kept.push(answers),
                None => return returned(&asks, &kept),
            }
        }
        for (n, (ask, it)) in stage.asks.iter().zip(kept[number].clone()).enumerate() {
            let (path, said) = (Ask::by_hand(number, n), it.answer());
            let chain = answered(&path, it.text, said, &env);
            env = env.after(chain);
            value = match after_answer(said, &path, ask.unwraps, value) {
                Ok(value) => value,
                Err(stop) => return Reply::Complete(stop.to_string()),
            };
        }
    }
    Reply::Complete(in_words(run(ctx, last, env, value).await.result))
}

/// The questions of one round: path, words and form.
fn asks_of(number: usize, stage: &Stage, value: u64, env: &Env) -> Vec<(String, String, Ask)> {
    let numbered = stage.asks.iter().enumerate();
    let ask = |(n, ask): (usize, &Ask)| {
        let path = Ask::by_hand(number, n);
        let text = words(ask.text, &path, value, env);
        (path, text, *ask)
    };
    numbered.map(ask).collect()
}

fn put(path: &str, text: &str, form: Form) -> Put {
    match form {
        Form::Pick => Put::of::<Pick>(path, text),
        Form::Sure => Put::of::<Sure>(path, text),
        Form::Note => Put::of::<Note>(path, text),
    }
}

/// The answer to a question by hand, if it was asked in exactly these words.
fn given(ctx: &Ctx, path: &str, text: &str, form: Form, env: &Env) -> Option<StoredAnswer> {
    let ask = put(path, text, form);
    let said = match form {
        Form::Pick => ctx.by_hand().form::<Pick>(&ask).map(|it| it.map(|it| read(it, path, env))),
        Form::Sure => ctx.by_hand().form::<Sure>(&ask).map(|it| it.map(|it| read(it, path, env))),
        Form::Note => ctx.by_hand().form::<Note>(&ask).map(|it| it.map(|it| read(it, path, env))),
    };
    let said = said.unwrap_or_else(|error| {
        env.wrong(format!("the answer to `{path}` cannot be read: {error:?}"));
        None
    });
    said.map(|said| StoredAnswer::new(text, said))
}

fn returned(asks: &[(String, String, Ask)], kept: &[Vec<StoredAnswer>]) -> Reply<String> {
    let mut puts = asks.iter().map(|(path, text, ask)| put(path, text, ask.form));
    let first = InputRequired::ask(puts.next().expect("a round has a question"));
    puts.fold(first, InputRequired::and).with_json_state(&kept).expect("plain data").into()
}

/// An answer in the state of a handler, with the question it was given to.
#[derive(Clone, Serialize, Deserialize)]
struct StoredAnswer {
    text: String,
    refused: Option<bool>,
    number: u64,
}

impl StoredAnswer {
    fn new(text: &str, said: UserAnswer) -> Self {
        let (refused, number) = match said {
            UserAnswer::Accept(number) => (None, number),
            UserAnswer::Decline => (Some(true), 0),
            UserAnswer::Cancel => (Some(false), 0),
        };
        Self { text: text.to_owned(), refused, number }
    }

    fn answer(&self) -> UserAnswer {
        match self.refused {
            None => UserAnswer::Accept(self.number),
            Some(true) => UserAnswer::Decline,
            Some(false) => UserAnswer::Cancel,
        }
    }
}

/// One resolver's program, behind what came before it.
async fn resolve(ctx: &Ctx, number: usize, before: Option<End>) -> End {
    let scene = Scene::of(ctx);
    let Program::Resolved(resolvers, _) = &*scene.program else { unreachable!("another tool's") };
    let env = Env::new(scene.clone()).at(BranchPosition::in_resolver(number));
    match before {
        None => run(ctx, &resolvers[number], env, u64::from(number == 2)).await,
        Some(End { result: Ok(value), chain }) => run(ctx, &resolvers[number], env.after(chain), value).await,
        Some(end) => end,
    }
}

#[resolver]
async fn first(ctx: &Ctx) -> Outcome<End> {
    Ok(resolve(ctx, 0, None).await)
}

#[resolver]
async fn second(ctx: &Ctx, #[resolve(first)] first: End) -> Outcome<End> {
    Ok(resolve(ctx, 1, Some(first)).await)
}

#[resolver]
async fn third(ctx: &Ctx) -> Outcome<End> {
    Ok(resolve(ctx, 2, None).await)
}

/// Runs behind its resolvers.
#[tool(needs(form))]
async fn resolved(ctx: &Ctx, #[resolve(third)] third: End, #[resolve(second)] second: End) -> String {
    let scene = Scene::of(ctx);
    let Program::Resolved(_, last) = &*scene.program else { return "another tool's".to_owned() };
    let End { result, chain } = all_of(vec![second, third]);
    let value = match result {
        Ok(value) => value,
        Err(stop) => return Stop::to_string(&stop),
    };
    let env = Env::new(scene.clone()).after(chain);
    let end = counted(&scene.trace, run(ctx, last, env, value)).await;
    end.map_or_else(spins, |end| in_words(end.result))
}
