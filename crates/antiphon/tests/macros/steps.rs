//! Steps in every shape that a handler may hold them. Whatever their closures borrow, the handler compiles: its future
//! is `Send`, which the compiler must see for every lifetime.
#![cfg(feature = "macros")]

use crate::common::request;
use antiphon::{
    Error, Result, prompt, resolver, server,
    server::{Caller, Ctx, Retry, Server, State, StepError, Tool, flow::Winner, steps::Attempt},
    tool,
};
use futures_util::{FutureExt as _, StreamExt as _, TryFutureExt as _, stream::FuturesUnordered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{num::ParseIntError, pin::Pin, time::Duration};
use tokio::task::yield_now;

async fn double(number: &u32) -> Result<u32> {
    yield_now().await;
    Ok(number * 2)
}

async fn length(text: &str) -> Result<u32> {
    yield_now().await;
    Ok(u32::try_from(text.len())?)
}

/// Its error is a library's.
async fn parsed(text: &str) -> Result<u32, ParseIntError> {
    yield_now().await;
    text.parse()
}

/// Adds a fee.
struct Bank(u32);

impl Bank {
    async fn charge(&self, amount: u32, key: &str) -> Result<u32> {
        yield_now().await;
        assert_eq!(key.len(), 32);
        Ok(self.0 + amount)
    }
}

#[tool]
async fn join(ctx: &Ctx, name: String, number: u32) -> Result<String> {
    let local = format!("{name}!");
    let (argument, borrowed, context) = tokio::join!(
        ctx.step("argument", async |_| double(&number).await),
        ctx.step("local", async |_| length(&local).await),
        ctx.step("ctx", async |_| Ok(ctx.leg())),
    );
    Ok(format!("{} {} {}", argument?, borrowed?, context?))
}

#[tool]
async fn try_join(ctx: &Ctx, name: &str, number: u32) -> Result<String> {
    let local = name.to_owned();
    let (a, b) = tokio::try_join!(
        ctx.step("a", async |_| double(&number).await),
        ctx.step("b", async |_| length(&local).await),
    )?;
    let c = ctx.step("c", async |_| length(name).await).map(|c| c.unwrap_or(0)).await;
    let d = ctx.step("d", async |_| length(name).await).map_ok(|d| d + c);
    let d = d.and_then(async |d| ctx.step("then", async |_| double(&d).await).await).await?;
    Ok(format!("{a} {b} {c} {d}"))
}

#[tool]
async fn join_all(ctx: &Ctx, name: String, number: u32, bank: State<Bank>) -> Result<String> {
    let names = [name.clone(), format!("{name}!")];
    let steps = names.iter().zip(0..).map(|(name, i)| ctx.step(("length", i), async |_| length(name).await));
    let lengths = ctx.join_all(steps).await.into_iter().collect::<Result<Vec<u32>, _>>()?;
    let charges = lengths
        .iter()
        .zip(0..)
        .map(|(amount, i)| ctx.step(("charge", i), async |s: Attempt| bank.charge(*amount, s.key()).await));
    let charges = futures_util::future::try_join_all(charges).await?;
    let step = async |i| ctx.step(("block", i), async |_| double(&number).await).await;
    let doubles = ctx.join_all((0..2).map(step)).await;
    let steps = names.iter().zip(0..).map(|(name, i)| ctx.step(("set", i), async |_| length(name).await));
    let set: FuturesUnordered<_> = steps.collect();
    let mut lengths_again: Vec<u32> = set.map(|length| length.unwrap_or(0)).collect().await;
    lengths_again.sort_unstable();
    Ok(format!("{lengths:?} {charges:?} {} {lengths_again:?}", doubles.len()))
}

#[tool]
async fn select(ctx: &Ctx, name: String, number: u32) -> Result<String> {
    let (argument, local) = (
        ctx.step("argument", async |_| length(&name).await),
        ctx.step("local", async |_| double(&number).await),
    );
    let first = match ctx.select("race", (argument, local)).await {
        Winner::A(length) => length?,
        Winner::B(double) => double?,
    };
    let all = ctx.join_all((0..2).map(|i| ctx.step(("all", i), async |_| double(&number).await)));
    let block = async { ctx.step("block", async |_| double(&number).await).await };
    let (inner, beside) =
        tokio::join!(ctx.select("inner", (all, block)), ctx.step("beside", async |_| double(&number).await));
    let inner = match inner {
        Winner::A(all) => format!("{} of all", all.len()),
        Winner::B(block) => format!("a block: {}", block?),
    };
    let won = tokio::select! {
        biased;
        length = ctx.step("left", async |_| length(&name).await) => length?,
        double = ctx.step("right", async |_| double(&number).await) => double?,
    };
    Ok(format!("{first}, {inner}, {}, {won}", beside?))
}

async fn helper(ctx: &Ctx, text: &str) -> Result<u32> {
    let (a, b) = tokio::join!(ctx.step("helper", async |_| length(text).await), nested(ctx, text));
    Ok(a? + b?)
}

async fn nested(ctx: &Ctx, text: &str) -> Result<u32> {
    let scope = ctx.scope("nested");
    let (a, b) =
        tokio::try_join!(scope.step("a", async |_| length(text).await), scope.step("b", async |_| Ok(1)))?;
    Ok(a + b)
}

#[tool]
async fn helpers(ctx: &Ctx, name: String, number: u32) -> Result<String> {
    let (a, b) = tokio::join!(helper(ctx, &name), ctx.step("own", async |_| double(&number).await));
    Ok(format!("{} {}", a?, b?))
}

/// Generic in what is run: it need not be said to be `Send`.
async fn by_function<T, F, Fut>(ctx: &Ctx, key: &str, run: F) -> Result<(T, T)>
where
    T: Serialize + DeserializeOwned,
    F: Fn(Attempt) -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let (a, b) = tokio::join!(ctx.step((key, 0), &run), ctx.step((key, 1), async |s| run(s).await));
    Ok((a?, b?))
}

/// Generic in an asynchronous closure, whose future has no name to say anything of.
async fn by_closure<T: Serialize + DeserializeOwned>(
    ctx: &Ctx,
    key: &str,
    run: impl AsyncFnOnce(Attempt) -> Result<T>,
) -> Result<T, StepError> {
    ctx.step(key, async |s| run(s).await).await
}

#[tool]
async fn generic(ctx: &Ctx, name: String, number: u32, bank: State<Bank>) -> Result<String> {
    let (function, closure) = tokio::join!(
        by_function(ctx, "function", |_| double(&number)),
        by_function(ctx, "closure", async |_| Ok(name.clone())),
    );
    let (a, b) = tokio::try_join!(
        by_closure(ctx, "a", async |s| bank.charge(number, s.key()).await),
        by_closure(ctx, "b", async |_| length(&name).await),
    )?;
    Ok(format!("{:?} {:?} {a} {b}", function?, closure?))
}

#[tool]
async fn kinds(ctx: &Ctx, name: String, number: u32, bank: State<Bank>) -> Result<String> {
    let digits = number.to_string();
    let retry = Retry::times(2).interval(Duration::from_secs(1));
    let (function, closure, pinned, retried) = tokio::join!(
        ctx.step_fn("function", |_| parsed(&digits)),
        ctx.step_fn("closure", async |_| parsed(&digits).await),
        ctx.step_with("pinned", &name, async |_| Ok(length(&name).await? + parsed(&digits).await?)),
        ctx.step_retry("retried", retry, async |s| bank.charge(parsed(&digits).await?, s.key()).await),
    );
    let second = async |s: Attempt| match s.number() {
        1 => Err(StepError::retry(Error::user_facing("not yet"))),
        _ => Ok(parsed(&digits).await?),
    };
    let second = ctx.step_retry("second", Retry::times(2), second).await?;
    Ok(format!("{} {} {} {} {second}", function?, closure?, pinned?, retried?))
}

#[tool]
async fn held(ctx: &Ctx, name: String, number: u32) -> Result<String> {
    let mut sum = 0;
    for i in 0..2 {
        let step = ctx.step(("sum", i), async |_| {
            sum += double(&number).await?;
            Ok(sum)
        });
        tokio::time::timeout(Duration::from_secs(60), step).await??;
    }
    let owned = name.clone();
    let moved = ctx.step("moved", async move |s| length(&format!("{owned}{}", s.key())).await);
    let pinned = std::pin::pin!(ctx.step("pinned", async |_| length(&name).await));
    let boxed: Pin<Box<dyn Future<Output = _> + Send + '_>> =
        Box::pin(ctx.step("boxed", async |_| length(&name).await));
    let (moved, pinned, boxed) = tokio::join!(moved, pinned, boxed);
    Ok(format!("{sum} {} {} {}", moved?, pinned?, boxed?))
}

#[tool]
async fn urls(ctx: &Ctx, name: String, bank: State<Bank>) -> Result<String> {
    let host = "example.com".to_owned();
    let pages =
        ctx.join_all((1..3).map(|i| ctx.elicit_url("Pay.", |r| format!("https://{host}/{r}")).nth(i)));
    let (log_in, paid, step, _) = tokio::join!(
        ctx.elicit_url("Log in.", |r| format!("https://{host}/{name}/{r}")).outcome(),
        ctx.elicit_url("Pay.", |r| format!("https://{host}/{r}"))
            .key("paid")
            .until(async || Ok(bank.charge(1, &name).await? > 1)),
        ctx.step("beside", async |_| length(&name).await),
        pages,
    );
    Ok(format!("{:?} {:?} {}", log_in?, paid?, step?))
}

struct Office {
    city: String,
    bank: Bank,
}

#[server]
impl Office {
    #[tool]
    async fn method(&self, ctx: &Ctx, name: &str) -> Result<String> {
        let (a, b) = tokio::join!(
            ctx.step("a", async |s| self.bank.charge(length(name).await?, s.key()).await),
            self.inner(ctx)
        );
        Ok(format!("{} {}", a?, b?))
    }

    async fn inner(&self, ctx: &Ctx) -> Result<u32> {
        let (b, c) = tokio::try_join!(
            ctx.step("b", async |_| length(&self.city).await),
            ctx.step("c", async |_| length(&self.city).await)
        )?;
        Ok(b + c)
    }
}

#[resolver]
async fn cost(ctx: &Ctx, name: &str, bank: State<Bank>) -> Result<u32> {
    let (a, b) = tokio::try_join!(
        ctx.step("a", async |_| length(name).await),
        ctx.step("b", async |s: Attempt| bank.charge(1, s.key()).await)
    )?;
    Ok(a + b)
}

#[tool]
async fn resolved(ctx: &Ctx, name: String, #[resolve(cost)] cost: &u32) -> Result<String> {
    let (a, b) = tokio::try_join!(
        ctx.step("a", async |_| length(&name).await),
        ctx.step("b", async |_| double(cost).await)
    )?;
    Ok(format!("{a} {b}"))
}

#[prompt]
async fn prompted(ctx: &Ctx, name: &str) -> Result<String> {
    let (a, b) = tokio::try_join!(
        ctx.step("a", async |_| length(name).await),
        ctx.step("b", async |_| length(name).await)
    )?;
    Ok(format!("{a} {b}"))
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

/// A tool without a macro.
fn plain() -> Tool {
    Tool::new("plain", async |ctx: &Ctx, Named { name }: Named| -> Result<String> {
        let (a, b) = tokio::try_join!(
            ctx.step("a", async |_| length(&name).await),
            ctx.step("b", async |_| Ok(ctx.leg()))
        )?;
        Ok(format!("{a} {b}"))
    })
}

/// Makes a call. Returns its text, or the keys of its questions.
async fn call(server: &Server, method: &str, name: &str, arguments: Value) -> String {
    let message = request(1, method, json!({"name": name, "arguments": arguments})).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    let result = &reply["result"];
    if let Some(asks) = result["inputRequests"].as_object() {
        return asks.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    }
    let text = &result["content"][0]["text"].as_str();
    text.or(result["messages"][0]["content"]["text"].as_str()).unwrap_or_else(|| panic!("{reply}")).to_owned()
}

#[tokio::test]
async fn steps_run_wherever_they_are_held() {
    let office = Office { city: "Oslo".to_owned(), bank: Bank(100) };
    let server = Server::builder("steps", "1")
        .state(Bank(10))
        .tool(join)
        .tool(try_join)
        .tool(join_all)
        .tool(select)
        .tool(helpers)
        .tool(generic)
        .tool(kinds)
        .tool(held)
        .tool(urls)
        .tool(resolved)
        .tool(plain())
        .prompt(prompted)
        .with(office)
        .build()
        .unwrap();
    for (name, arguments, expected) in [
        ("join", json!({"name": "orders", "number": 4}), "8 7 1"),
        ("try_join", json!({"name": "orders", "number": 4}), "8 6 6 24"),
        ("join_all", json!({"name": "orders", "number": 4}), "[6, 7] [16, 17] 2 [6, 7]"),
        ("select", json!({"name": "orders", "number": 4}), "6, 2 of all, 8, 6"),
        ("helpers", json!({"name": "orders", "number": 4}), "13 8"),
        ("generic", json!({"name": "orders", "number": 4}), "(8, 8) (\"orders\", \"orders\") 14 6"),
        ("kinds", json!({"name": "orders", "number": 4}), "4 4 10 14 4"),
        ("held", json!({"name": "orders", "number": 4}), "16 38 6 6"),
        ("urls", json!({"name": "orders"}), "paid url url#1 url#2"),
        ("resolved", json!({"name": "orders"}), "6 34"),
        ("plain", json!({"name": "orders"}), "6 1"),
        ("method", json!({"name": "orders"}), "106 8"),
    ] {
        assert_eq!(call(&server, "tools/call", name, arguments).await, expected, "{name}");
    }
    assert_eq!(call(&server, "prompts/get", "prompted", json!({"name": "orders"})).await, "6 6");
}
