//! Handlers that wait for other things beside their questions, on several threads, thousands of times: every question
//! leaves in the round it belongs to, once, and the call ends.
//!
//! In a test of the rule, the grace is an hour: with a lost wake, or with a waker that is held for nothing, the call
//! does not end. In a test of the grace, the grace is short.

use crate::common::tool_call::*;
use crate::common::*;
use antiphon::{
    Form, Result,
    server::{Ctx, Limits, NoArguments, Server, Tool},
};
use futures_util::{StreamExt as _, future, stream::FuturesUnordered};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    future::{Future, pending, poll_fn},
    net::SocketAddr,
    pin::pin,
    sync::{LazyLock, OnceLock, mpsc as threads},
    task::{Poll, Waker},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::{spawn_blocking, yield_now},
    time::sleep,
};

/// Longer than any test may take: then a leg ends by the rule or not at all.
const RULE: Duration = Duration::from_secs(3600);
/// Nothing is waited for that takes longer.
const GRACE: Duration = Duration::from_millis(5);
/// A call that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(300);
/// Calls at once.
const TASKS: usize = 32;

#[derive(Deserialize, Form)]
struct Word {
    word: String,
}

async fn ask(ctx: &Ctx, key: &'static str) -> Result<String> {
    Ok(ctx.elicit::<Word>("Which word?").key(key).await?.word)
}

/// Names the type of an async block.
fn branch<F: Future<Output = Result<String>>>(branch: F) -> F {
    branch
}

/// A thread of no runtime runs this.
fn elsewhere(job: impl FnOnce() + Send + 'static) {
    type Job = Box<dyn FnOnce() + Send>;
    static THREADS: LazyLock<[threads::Sender<Job>; 2]> = LazyLock::new(|| {
        [(); 2].map(|()| {
            let (sender, jobs) = threads::channel::<Job>();
            std::thread::spawn(move || jobs.iter().for_each(|job| job()));
            sender
        })
    });
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    THREADS[next % THREADS.len()].send(Box::new(job)).expect("the threads live as long as the process");
}

/// Goes on after so many polls, each of which does this with a clone of its waker.
fn polled(times: usize, with: impl Fn(Waker)) -> impl Future<Output = ()> {
    let mut left = times;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        with(cx.waker().clone());
        Poll::Pending
    })
}

/// A question, and beside it something that is given up once the answer is there.
async fn beside(
    question: impl Future<Output = Result<String>>,
    noise: impl Future<Output = ()>,
) -> Result<String> {
    let (mut question, mut noise) = (pin!(question), pin!(noise));
    poll_fn(|cx| {
        let answer = question.as_mut().poll(cx);
        if answer.is_pending() {
            assert!(noise.as_mut().poll(cx).is_pending(), "the noise does not end");
        }
        answer
    })
    .await
}

/// Calls the tool `runs` times, [`TASKS`] at once. Each call asks in exactly these rounds, whose keys are sorted, and
/// says the words it was given, which are its own.
async fn check(tool: Tool, grace: Duration, runs: usize, rounds: &'static [&'static [&'static str]]) {
    let limits = Limits::default().grace(grace);
    let server = Server::builder("stress", "1")
        .tool(tool)
        .keys(ring(7))
        .limits(limits)
        .build()
        .expect("the server can be built");
    let calls = (0..TASKS).map(|task| {
        let server = server.clone();
        tokio::spawn(async move {
            for run in (task..runs).step_by(TASKS) {
                call(&server, run, rounds).await;
            }
        })
    });
    let all = future::try_join_all(calls.collect::<Vec<_>>());
    tokio::time::timeout(HANGS, all).await.expect("no call hangs").expect("no call panics");
}

async fn call(server: &Server, run: usize, rounds: &[&[&str]]) {
    let keys = || rounds.iter().copied().flatten();
    let answers: Map<_, _> =
        keys().map(|key| ((*key).to_owned(), accept(json!({"word": format!("{key}{run}")})))).collect();
    let mut talk = ToolCall::new(json!({}));
    let reply = talk.through(server, &Value::Object(answers)).await;
    let mut asked = talk.rounds;
    asked.iter_mut().for_each(|round| round.sort_unstable());
    assert_eq!(asked, rounds, "run {run}");
    let mut words: Vec<_> = keys().map(|key| format!("{key}{run}")).collect();
    words.sort_unstable();
    let mut said: Vec<_> = result_text(&reply).split(' ').map(str::to_owned).collect();
    said.sort_unstable();
    assert_eq!(said, words, "run {run}");
}

/// A tool that asks `a`, and beside that waits for something and then asks `b`; behind `a` it asks `c`. In the second
/// round is what follows an answer, in the first whatever does not.
macro_rules! waiting {
    ($ctx:ident: $wait:expr) => {
        Tool::new("t", async |$ctx: &Ctx, _: NoArguments| -> Result<String> {
            let (a, b) = tokio::join!(
                branch(async {
                    let a = ask($ctx, "a").await?;
                    Ok(format!("{a} {}", ask($ctx, "c").await?))
                }),
                branch(async {
                    $wait;
                    ask($ctx, "b").await
                }),
            );
            Ok(format!("{} {}", a?, b?))
        })
    };
}

/// The questions of [`waiting`], by round.
const WAITING: &[&[&str]] = &[&["a", "b"], &["c"]];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joined_questions_and_steps_are_one_round() {
    let tool = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let (a, b, c, d) = tokio::join!(
            ask(ctx, "a"),
            ctx.step("quick", async |_| Ok(())),
            branch(async {
                let step = ctx.step("slow", async |_| Ok(spawn_blocking(yield_thread).await?));
                step.await?;
                ask(ctx, "b").await
            }),
            future::join_all(["c", "d", "e", "f", "g", "h"].map(|key| ask(ctx, key))),
        );
        b?;
        let d: Result<Vec<_>> = d.into_iter().collect();
        Ok(format!("{} {} {}", a?, c?, d?.join(" ")))
    });
    check(tool, RULE, 500, &[&["a", "b", "c", "d", "e", "f", "g", "h"]]).await;
}

fn yield_thread() {
    std::thread::yield_now();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_another_thread_sends_is_waited_for() {
    let oneshot = waiting!(ctx: {
        let (sender, receiver) = oneshot::channel();
        elsewhere(move || sender.send(()).unwrap_or_default());
        receiver.await?
    });
    check(oneshot, RULE, 1000, WAITING).await;
    let gone = waiting!(ctx: {
        let (sender, receiver) = oneshot::channel::<()>();
        elsewhere(move || drop(sender));
        assert!(receiver.await.is_err(), "nothing was sent")
    });
    check(gone, RULE, 250, WAITING).await;
    let several = waiting!(ctx: {
        let (sender, mut receiver) = mpsc::channel(1);
        let task = ctx.spawn(async move {
            for n in 0..5_u32 {
                sender.send(n).await.expect("it is waited for");
            }
        });
        let mut sum = 0;
        while let Some(n) = receiver.recv().await {
            sum += n;
        }
        task.await?;
        assert_eq!(sum, 10)
    });
    check(several, RULE, 500, WAITING).await;
    check(waiting!(ctx: spawn_blocking(yield_thread).await?), RULE, 500, WAITING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_waker_that_is_woken_and_dropped_while_it_is_judged_is_not_missed() {
    // Each poll gives another thread a clone, which wakes at any time: while the poll lasts, while the driver judges,
    // after that.
    check(waiting!(ctx: polled(5, |waker| elsewhere(move || waker.wake())).await), RULE, 1000, WAITING).await;
    let by_ref = waiting!(ctx: polled(5, |waker| elsewhere(move || waker.wake_by_ref())).await);
    check(by_ref, RULE, 250, WAITING).await;
    let two = waiting!(ctx: polled(5, |waker| {
        let other = waker.clone();
        elsewhere(move || drop(other));
        elsewhere(move || waker.wake());
    }).await);
    check(two, RULE, 500, WAITING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_wakes_itself_is_waited_for() {
    check(waiting!(ctx: polled(200, Waker::wake).await), RULE, 250, WAITING).await;
    let yields = waiting!(ctx: for _ in 0..500 {
        yield_now().await;
    });
    check(yields, RULE, 100, WAITING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sockets_and_timers_are_waited_for() {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let echo = tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut bytes = [0; 4];
                socket.read_exact(&mut bytes).await.unwrap();
                socket.write_all(&bytes).await.unwrap();
            });
        }
    });
    ADDRESS.set(address).unwrap();
    let sockets = waiting!(ctx: {
        let mut socket = TcpStream::connect(ADDRESS.get().unwrap()).await?;
        socket.write_all(b"ping").await?;
        let mut bytes = [0; 4];
        socket.read_exact(&mut bytes).await?;
        assert_eq!(&bytes, b"ping")
    });
    check(sockets, RULE, 250, WAITING).await;
    echo.abort();
    check(waiting!(ctx: sleep(Duration::from_millis(1)).await), RULE, 250, WAITING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_at_once_is_one_round() {
    let tool = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let words = tokio::join!(
            ask(ctx, "a"),
            branch(async {
                let (sender, receiver) = oneshot::channel();
                elsewhere(move || sender.send(()).unwrap_or_default());
                receiver.await?;
                ask(ctx, "b").await
            }),
            branch(async {
                spawn_blocking(yield_thread).await?;
                ask(ctx, "c").await
            }),
            branch(async {
                yield_now().await;
                ctx.step("between", async |_| {
                    yield_now().await;
                    Ok(())
                })
                .await?;
                polled(3, |waker| elsewhere(move || waker.wake())).await;
                ask(ctx, "d").await
            }),
            branch(async {
                sleep(Duration::from_millis(1)).await;
                ask(ctx, "e").await
            }),
        );
        Ok([words.0?, words.1?, words.2?, words.3?, words.4?].join(" "))
    });
    check(tool, RULE, 500, &[&["a", "b", "c", "d", "e"]]).await;
}

/// Forty keys, in their order.
const FORTY: &[&str] = &[
    "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19", "f20", "f21", "f22", "f23", "f24",
    "f25", "f26", "f27", "f28", "f29", "f30", "f31", "f32", "f33", "f34", "f35", "f36", "f37", "f38", "f39",
    "f40", "f41", "f42", "f43", "f44", "f45", "f46", "f47", "f48", "f49",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_questions_are_one_round() {
    let join_all = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let words: Result<Vec<_>> =
            ctx.join_all(FORTY.iter().map(|key| ask(ctx, key))).await.into_iter().collect();
        Ok(words?.join(" "))
    });
    check(join_all, RULE, 50, &[FORTY]).await;
    // It parks the waker it is polled with: the leg waits for the grace.
    let unordered = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let asks: FuturesUnordered<_> = FORTY.iter().map(|key| ask(ctx, key)).collect();
        let words: Result<Vec<_>> = asks.collect::<Vec<_>>().await.into_iter().collect();
        Ok(words?.join(" "))
    });
    check(unordered, GRACE, 50, &[FORTY]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_does_not_end_is_waited_for_no_longer_than_the_grace() {
    macro_rules! noisy {
        ($noise:expr) => {
            Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                beside(ask(ctx, "a"), $noise).await
            })
        };
    }
    let rounds: &[&[&str]] = &[&["a"]];
    let wakes_itself = noisy!(poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::Pending
    }));
    check(wakes_itself, GRACE, 150, rounds).await;
    let yields = noisy!(async {
        loop {
            yield_now().await;
        }
    });
    check(yields, GRACE, 150, rounds).await;
    check(noisy!(polled(usize::MAX, |waker| elsewhere(move || waker.wake()))), GRACE, 150, rounds).await;
    // Dropped where nobody sees it: by the rule if the driver looks late, by the grace if it looks early.
    check(noisy!(polled(usize::MAX, |waker| elsewhere(move || drop(waker)))), GRACE, 150, rounds).await;
    check(noisy!(sleep(RULE)), GRACE, 150, rounds).await;
    // Kept by nobody: the rule decides.
    check(noisy!(pending()), RULE, 500, rounds).await;
}
