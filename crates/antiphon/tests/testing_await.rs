//! The bench and handlers that ask with `await`: what keeps the rules, and what breaks them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use antiphon::{
    Form, Result,
    server::{Ctx, NoArguments, Server, ServerBuilder, Tool},
    testing::{Bench, Effects, Fault, Guarantee, Person, Report},
};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[derive(serde::Deserialize, Form)]
struct Keep {
    days: u8,
}

type Handler = for<'a> fn(&'a Ctx, &'a Replica) -> BoxFuture<'a, Result<String>>;

/// What a replica has of its own.
#[derive(Clone)]
struct Replica {
    effects: Effects,
    memory: Arc<Mutex<Option<String>>>,
}

impl Replica {
    /// Does it, under this key; gives the number of the key.
    async fn perform(&self, name: &str, key: &str) -> Result<usize> {
        Ok(self.effects.perform(name, key).await)
    }
}

/// Says of a closure that its future may hold the context it is lent.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
    handler
}

fn server(effects: &Effects, handler: Handler) -> ServerBuilder {
    let replica = Replica { effects: effects.clone(), memory: Arc::default() };
    let run = lent(move |ctx, _| {
        let replica = replica.clone();
        Box::pin(async move { handler(ctx, &replica).await })
    });
    Server::builder("tools", "1.0").tool(Tool::new("tool", run))
}

async fn torture(handler: Handler) -> Report {
    let person = Person::new().accept("region", json!({"region": "eu"})).accept("keep", json!({"days": 3}));
    Bench::new(move |effects| server(effects, handler)).person(person).torture("tool", ()).await
}

/// Asks, does, asks, does.
fn order<'a>(ctx: &'a Ctx, replica: &'a Replica) -> BoxFuture<'a, Result<String>> {
    Box::pin(async move {
        let Region { region } = ctx.elicit("Which region?").await?;
        let number: usize = ctx.step("create", async |s| replica.perform("create", s.key()).await).await?;
        let Keep { days } = ctx.elicit("For how long?").await?;
        let bill: usize = ctx.step("charge", async |s| replica.perform("charge", s.key()).await).await?;
        Ok(format!("db-{number} in {region} for {days} days, bill {bill}"))
    })
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_keeps_the_rules() {
    let report = torture(order).await;
    report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
    report.plain().expect_text("db-1 in eu for 3 days, bill 1").expect_asked(&["region", "keep"]);
    assert_eq!(report.plain().legs().len(), 3);
    for (fault, done) in report.runs() {
        assert!(done.struck() || matches!(fault, Fault::AnswersReversed), "{fault} did not happen");
    }
}
