//! A tree as a handler.

use crate::{
    branch::{End, Env, Running, panic_quietly},
    leaves::{ask, raw, step},
    stop::Stop,
    trace::{BranchResult, Chain},
    tree::{Joined, Name, Node, letter},
    user::{in_branch, mix, together},
};
use antiphon::server::{Ctx, flow::Winner};
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{join_all, try_join_all},
    stream::{self, FuturesUnordered},
};
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::watch;

/// Runs one node on what came before it.
pub(crate) fn run<'a>(ctx: &'a Ctx, node: &'a Node, env: Env, value: u64) -> Running<'a> {
    Box::pin(async move {
        let same = |result| End { result, chain: Arc::clone(&env.chain) };
        match node {
            Node::Ask(it) => {
                let path = it.path(&env.at);
                ask(ctx, it, path, &env, value).await
            }
            Node::Step(it) => same(step(ctx, it, &env, value).await),
            Node::Raw(it) => {
                raw(*it).await;
                env.alive().await;
                same(Ok(mix("raw", "", value)))
            }
            Node::IntoTask => {
                if let Err(error) = ctx.into_task().await {
                    env.wrong(format!("the call becomes no task: {error}"));
                }
                same(Ok(value))
            }
            Node::Checkpoint { name, now } => {
                let checkpoint = ctx.checkpoint().key(letter(*name));
                let checkpoint = match env.at.number(*name) {
                    None => checkpoint,
                    Some(number) => checkpoint.nth(number),
                };
                if *now {
                    checkpoint.now().await
                } else {
                    checkpoint.await
                }
                same(Ok(value))
            }
            Node::Panics(name) => {
                if env.scene.trace.panics_at(env.at.path(letter(*name), *name)) {
                    env.scene.leg.panicked.store(true, Ordering::Relaxed);
                    panic_quietly();
                }
                same(Ok(value))
            }
            Node::Throws => panic_quietly(),
            Node::Unwind(name, node) => {
                let ran = AssertUnwindSafe(run(ctx, node, env.clone(), value)).catch_unwind().await;
                let path = env.at.path(letter(*name), *name);
                env.decided(format!("unwind {path}"), BranchResult::Unwound(ran.is_err()));
                ran.unwrap_or_else(|_| same(Ok(mix("unwound", "", value))))
            }
            Node::Seq(nodes) => {
                let mut end = same(Ok(value));
                for node in nodes {
                    let Ok(value) = end.result else { break };
                    end = run(ctx, node, env.after(end.chain), value).await;
                }
                end
            }
            Node::Join(joined, nodes) => {
                all_of(joined_by(ctx, *joined, branches(ctx, nodes, &env, value)).await)
            }
            Node::Try(name, nodes) => try_join(ctx, *name, nodes, &env, value).await,
            Node::Select(name, nodes) => {
                let (winner, end) = race(ctx, env.at.number(*name), letter(*name), nodes, &env, value).await;
                let path = env.at.path(letter(*name), *name);
                env.decided(format!("select {path}"), BranchResult::Winner(winner));
                let result = end.result.map(|value| mix("won", "", value ^ winner as u64));
                End { result, ..end }
            }
            Node::Feed(joined, first, second) => feed(ctx, *joined, first, second, &env, value).await,
            Node::Takes => {
                let mut feed = env.feed.clone().expect("inside of a feed");
                let end =
                    feed.wait_for(Option::is_some).await.expect("the first branch ends by sending").clone();
                let End { result, chain } = all_of(vec![same(Ok(value)), end.expect("waited for")]);
                End { result, chain }
            }
            Node::Pipe(first, second) => pipe(ctx, first, second, &env, value).await,
            Node::Scope(name, node) => {
                let (scope, at) = env.at.scope(*name);
                let below = ctx.scope(scope);
                run(&below, node, env.at(at), value).await
            }
            Node::Loop { name, scoped, most, body } => {
                repeat(ctx, (*name, *scoped, *most), body, &env, value).await
            }
            Node::If(yes, no) => {
                let node = if value.is_multiple_of(2) { yes } else { no };
                run(ctx, node, env, value).await
            }
            Node::Catch(node) => {
                let end = run(ctx, node, env, value).await;
                End { result: Ok(end.result.unwrap_or_else(|Stop(why)| mix("caught", "", why))), ..end }
            }
            Node::Helper(node) => helper(ctx, |ctx| run(ctx, node, env, value)).await,
        }
    })
}

/// Someone else's function, which knows nothing of questions.
async fn helper<'a, T>(ctx: &'a Ctx, call: impl FnOnce(&'a Ctx) -> Running<'a>) -> T
where
    T: From<End>,
{
    call(ctx).await.into()
}

fn branches<'a>(ctx: &'a Ctx, nodes: &'a [Node], env: &Env, value: u64) -> Vec<Running<'a>> {
    let branch = |(n, node)| run(ctx, node, env.clone(), in_branch(value, n));
    nodes.iter().enumerate().map(branch).collect()
}

async fn joined_by<'a>(ctx: &'a Ctx, joined: Joined, mut all: Vec<Running<'a>>) -> Vec<End> {
    let numbered = |all: Vec<Running<'a>>| all.into_iter().enumerate().map(numbered);
    let mut ends: Vec<(usize, End)> = match joined {
        Joined::Ours => return ctx.join_all(all).await,
        Joined::Futures => return join_all(all).await,
        Joined::Macro if all.len() == 2 => {
            let (b, a) = (all.pop().unwrap(), all.pop().unwrap());
            let (a, b) = tokio::join!(a, b);
            return vec![a, b];
        }
        Joined::Macro => {
            let rest = all.split_off(2);
            let (b, a) = (all.pop().unwrap(), all.pop().unwrap());
            let (a, b, rest) = tokio::join!(a, b, join_all(rest));
            return [a, b].into_iter().chain(rest).collect();
        }
        Joined::Unordered => numbered(all).collect::<FuturesUnordered<_>>().collect().await,
        Joined::Buffered(most) => stream::iter(numbered(all)).buffer_unordered(most.into()).collect().await,
    };
    ends.sort_by_key(|(n, _)| *n);
    ends.into_iter().map(|(_, end)| end).collect()
}

async fn numbered((number, running): (usize, Running<'_>)) -> (usize, End) {
    (number, running.await)
}

async fn or_stop(running: Running<'_>) -> Result<(u64, Chain), (Stop, Chain)> {
    let End { result, chain } = running.await;
    match result {
        Ok(value) => Ok((value, chain)),
        Err(stop) => Err((stop, chain)),
    }
}

/// The end of a join: what follows rests on all its branches.
pub(crate) fn all_of(ends: Vec<End>) -> End {
    let result = together(ends.iter().map(|end| end.result));
    let mut ends = ends.into_iter();
    let mut chain = ends.next().map(|end| end.chain).unwrap_or_default();
    for end in ends {
        if !end.chain.is_empty() {
            let more = end.chain.iter().map(|(path, link)| (path.clone(), link.clone()));
            Arc::make_mut(&mut chain).extend(more);
        }
    }
    End { result, chain }
}

async fn try_join(ctx: &Ctx, name: Name, nodes: &[Node], env: &Env, value: u64) -> End {
    let tried = try_join_all(branches(ctx, nodes, env, value).into_iter().map(or_stop)).await;
    let stop = tried.as_ref().err().map(|(stop, _)| *stop);
    env.decided(format!("try {}", env.at.path(letter(name), name)), BranchResult::Tried(stop));
    match tried {
        Ok(all) => all_of(all.into_iter().map(|(value, chain)| End { result: Ok(value), chain }).collect()),
        Err((stop, chain)) => End { result: Err(stop), chain },
    }
}

/// A loop: its name, whether each round has a scope of its own, and its rounds at most.
async fn repeat(
    ctx: &Ctx,
    (name, scoped, most): (Name, bool, u8),
    body: &Node,
    env: &Env,
    value: u64,
) -> End {
    let mut end = End { result: Ok(value), chain: Arc::clone(&env.chain) };
    for round in 0..most {
        let Ok(value) = end.result else { break };
        let (scope, at) = env.at.looped(name, scoped, round);
        let env = env.after(end.chain).at(at);
        end = match scope {
            Some(scope) => run(&ctx.scope(scope), body, env, value).await,
            None => run(ctx, body, env, value).await,
        };
        if end.result.is_ok_and(|value| value.is_multiple_of(5)) {
            break;
        }
    }
    end
}

async fn race(
    ctx: &Ctx,
    number: Option<u64>,
    key: &str,
    nodes: &[Node],
    env: &Env,
    value: u64,
) -> (usize, End) {
    let mut all = branches(ctx, nodes, env, value);
    if all.len() == 3 {
        let (c, b, a) = (all.pop().unwrap(), all.pop().unwrap(), all.pop().unwrap());
        let won = match number {
            None => ctx.select(key, (a, b, c)).await,
            Some(number) => ctx.select((key, number), (a, b, c)).await,
        };
        return match won {
            Winner::A(end) => (0, end),
            Winner::B(end) => (1, end),
            Winner::C(end) => (2, end),
        };
    }
    let (b, a) = (all.pop().unwrap(), all.pop().unwrap());
    let won = match number {
        None => ctx.select(key, (a, b)).await,
        Some(number) => ctx.select((key, number), (a, b)).await,
    };
    match won {
        Winner::A(end) => (0, end),
        Winner::B(end) => (1, end),
    }
}

/// Both branches run; the second may wait for the first on its way.
async fn feed(ctx: &Ctx, joined: Joined, first: &Node, second: &Node, env: &Env, value: u64) -> End {
    let (sender, receiver) = watch::channel(None);
    let sends: Running<'_> = Box::pin(async move {
        let end = run(ctx, first, env.clone(), in_branch(value, 0)).await;
        sender.send_replace(Some(end.clone()));
        end
    });
    let takes = run(ctx, second, Env { feed: Some(receiver), ..env.clone() }, in_branch(value, 1));
    all_of(joined_by(ctx, joined, vec![sends, takes]).await)
}

/// The second branch begins with the value of the first.
async fn pipe(ctx: &Ctx, first: &Node, second: &Node, env: &Env, value: u64) -> End {
    let (sender, receiver) = tokio::sync::oneshot::channel::<End>();
    let sends = async {
        let end = run(ctx, first, env.clone(), value).await;
        let _ = sender.send(end);
    };
    let takes = async {
        let end = receiver.await.expect("the first branch ends by sending");
        match end.result {
            Ok(value) => run(ctx, second, env.after(end.chain), mix("piped", "", value)).await,
            Err(_) => end,
        }
    };
    futures_util::future::join(sends, takes).await.1
}
