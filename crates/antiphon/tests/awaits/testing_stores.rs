//! The bench and stores: what each level promises holds after every fault, and a tool that breaks it is found.
#![cfg(feature = "macros")]

use antiphon::{
    Form, Result,
    client::Call,
    server::{ClaimOptions, Ctx, Server, ServerBuilder, State, offers::IntoTool},
    store::MemoryStore,
    testing::{
        Bench, DuplicateTiming, Effects, Fault, FindingKind, Guarantee, Outcome, Report, ScriptedUser,
    },
    tool,
};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

#[derive(serde::Deserialize, Form)]
struct Size {
    size: u32,
}

fn person() -> ScriptedUser {
    ScriptedUser::new().accept("size", json!({"size": 7})).accept("confirm", json!({"value": true}))
}

/// Returns the number of the effect with this key, if it happened.
fn find(shop: &Effects, name: &str, key: &str) -> Option<usize> {
    shop.all().iter().any(|effect| effect.name == name && effect.key == key).then_some(1)
}

/// Asks, then charges and ships.
#[tool]
async fn order(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
    let Size { size } = ctx.elicit("Which size?").await?;
    let charged = ctx.step("charge", async |s| Ok(shop.perform("charge", s.key()).await)).await?;
    let shipped = ctx.step("ship", async |s| Ok(shop.perform("ship", s.key()).await)).await?;
    Ok(format!("{size} {charged} {shipped}"))
}

/// The same, in another order, and each step looks for its effect after a crash.
#[tool(needs(form))]
async fn reconciled(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
    let reserve = ctx
        .step("reserve", async |s| Ok(shop.perform("reserve", s.key()).await))
        .reconcile(async |key| Ok(find(&shop, "reserve", &key)));
    let reserved = reserve.await?.min(1);
    let Size { size } = ctx.elicit("Which size?").await?;
    let charge = ctx
        .step("charge", async |s| Ok(shop.perform("charge", s.key()).await))
        .reconcile(async |key| Ok(find(&shop, "charge", &key)));
    let charged = charge.await?;
    Ok(format!("{size} {reserved} {charged}"))
}

/// No question.
#[tool]
async fn silent(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
    let charged = ctx.step("charge", async |s| Ok(shop.perform("charge", s.key()).await)).await?;
    Ok(format!("charged {charged}"))
}

/// Two steps at the same time.
#[tool]
async fn both(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
    let Size { size } = ctx.elicit("Which size?").await?;
    let charge = ctx.step("charge", async |s| Ok(shop.perform("charge", s.key()).await));
    let ship = ctx.step("ship", async |s| Ok(shop.perform("ship", s.key()).await));
    let (charged, shipped) = tokio::join!(charge, ship);
    Ok(format!("{size} {} {}", charged?, shipped?))
}

type Level = fn(ServerBuilder) -> ServerBuilder;

fn none(builder: ServerBuilder) -> ServerBuilder {
    builder
}

fn single_use(builder: ServerBuilder) -> ServerBuilder {
    builder.single_use(true)
}

fn write_ahead(builder: ServerBuilder) -> ServerBuilder {
    builder.write_ahead(true)
}

fn bench<S>(level: Level, tool: impl IntoTool<S> + Clone) -> Bench {
    let server = move |effects: &Effects| {
        let store = effects.shared::<MemoryStore>();
        level(Server::builder("shop", "1").state(effects.clone()).store(store).tool(tool.clone()))
    };
    Bench::new(server).user(person())
}

async fn faults<S>(level: Level, tool: impl IntoTool<S> + Clone, name: &str) -> Report {
    bench(level, tool).run_all_faults(name, ()).await
}

/// Checks that nothing is found, and if a crash may end as `outcome_unknown`.
#[track_caller]
fn passes(report: &Report, guarantee: Guarantee, has_unknown: bool) {
    report.expect_same_result().expect_effects(guarantee);
    let unknown: Vec<_> = report.unknown().collect();
    assert_eq!(!unknown.is_empty(), has_unknown, "{unknown:?}");
    for fault in unknown {
        assert!(matches!(fault, Fault::Crash { polls: 1.., .. } | Fault::Disconnect { .. }), "{fault}");
    }
    assert!(report.runs().len() > 10, "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_correct_tool_passes_at_each_level() {
    use Guarantee::{AtLeastOnce, AtMostOnce, OneKeyEach};
    passes(&faults(none, order, "order").await, OneKeyEach, false);
    passes(&faults(none, reconciled, "reconciled").await, AtLeastOnce, false);
    passes(&faults(single_use, order, "order").await, AtMostOnce, true);
    passes(&faults(single_use, silent, "silent").await, AtMostOnce, true);
    passes(&faults(single_use, both, "both").await, AtMostOnce, true);
    passes(&faults(write_ahead, order, "order").await, AtMostOnce, true);
    passes(&faults(write_ahead, silent, "silent").await, AtMostOnce, true);
    passes(&faults(write_ahead, both, "both").await, AtMostOnce, true);
    passes(&faults(write_ahead, reconciled, "reconciled").await, AtMostOnce, false);
}

/// The same call from a caller with a principal, and with an update of the server.
#[tokio::test(start_paused = true)]
async fn callers_and_builds() {
    for level in [single_use as Level, write_ahead] {
        let principal = antiphon::seal::Principal::user("ann");
        let report = bench(level, order).principal(principal).run_all_faults("order", ()).await;
        passes(&report, Guarantee::AtMostOnce, true);
        let newer = move |effects: &Effects| {
            let store = effects.shared::<MemoryStore>();
            level(Server::builder("shop", "2").state(effects.clone()).store(store).tool(order))
        };
        let report = bench(level, order).upgrade(newer).run_all_faults("order", ()).await;
        passes(&report, Guarantee::AtMostOnce, true);
    }
}

/// A tool of its own level, whose interrupted legs run again.
#[tokio::test(start_paused = true)]
async fn legs_that_run_again() {
    /// Asks and charges.
    #[tool(single_use, rerun_after_crash)]
    async fn once(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
        let Size { size } = ctx.elicit("Which size?").await?;
        let charged = ctx.step("charge", async |s| Ok(shop.perform("charge", s.key()).await)).await?;
        Ok(format!("{size} {charged}"))
    }

    /// Asks, charges and ships.
    #[tool(write_ahead, rerun_after_crash)]
    async fn ahead(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
        let Size { size } = ctx.elicit("Which size?").await?;
        let charged = ctx.step("charge", async |s| Ok(shop.perform("charge", s.key()).await)).await?;
        let shipped = ctx.step("ship", async |s| Ok(shop.perform("ship", s.key()).await)).await?;
        Ok(format!("{size} {charged} {shipped}"))
    }

    passes(&faults(none, once, "once").await, Guarantee::OneKeyEach, false);
    passes(&faults(none, ahead, "ahead").await, Guarantee::OneKeyEach, false);
}

/// Checks that the effects break the guarantee, after one of these faults.
#[track_caller]
fn is_found(report: &Report, text: &str, which: fn(&Fault) -> bool) {
    let found = report.effect_findings(Guarantee::AtMostOnce);
    let is_it = |finding: &antiphon::testing::Finding| {
        finding.kind == FindingKind::Effects
            && finding.text.contains(text)
            && finding.fault.as_ref().is_some_and(which)
    };
    assert!(found.iter().any(is_it), "{found:?}");
}

fn is_crash(fault: &Fault) -> bool {
    matches!(fault, Fault::Crash { polls: 1.., .. })
}

#[tokio::test(start_paused = true)]
async fn a_wrong_tool_is_found() {
    /// Ships outside of a step.
    #[tool]
    async fn outside(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
        let Size { size } = ctx.elicit("Which size?").await?;
        let key = ctx.call_id().map(|id| id.to_string()).unwrap_or_default();
        shop.perform("ship", key).await;
        Ok(format!("{size}"))
    }

    /// Says that each effect happened.
    #[tool]
    async fn optimist(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
        let Size { size } = ctx.elicit("Which size?").await?;
        let ship = ctx.step("ship", async |s| Ok(shop.perform("ship", s.key()).await));
        let shipped = ship.reconcile(async |_key| Ok(Some(1))).await?;
        Ok(format!("{size} {shipped}"))
    }

    /// Says that no effect happened.
    #[tool]
    async fn pessimist(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
        let Size { size } = ctx.elicit("Which size?").await?;
        let ship = ctx.step("ship", async |s| Ok(shop.perform("ship", s.key()).await));
        let shipped = ship.reconcile(async |_key| Ok(None)).await?;
        Ok(format!("{size} {shipped}"))
    }

    /// Reports another result than the step.
    #[tool]
    async fn liar(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
        let Size { size } = ctx.elicit("Which size?").await?;
        let ship = ctx.step("ship", async |s| Ok(shop.perform("ship", s.key()).await));
        let shipped = ship.reconcile(async |key| Ok(find(&shop, "ship", &key).map(|_| 9))).await?;
        Ok(format!("{size} {shipped}"))
    }

    is_found(
        &faults(write_ahead, outside, "outside").await,
        "`ship` happened 2 times instead of 1",
        is_crash,
    );
    is_found(
        &faults(write_ahead, optimist, "optimist").await,
        "`ship` happened 0 times instead of 1",
        is_crash,
    );
    is_found(
        &faults(write_ahead, pessimist, "pessimist").await,
        "`ship` happened 2 times instead of 1",
        is_crash,
    );
    let report = faults(write_ahead, liar, "liar").await;
    let found: Vec<String> = report.findings().iter().map(ToString::to_string).collect();
    assert!(
        found.iter().any(|text| text.starts_with("crash after poll") && text.contains("7 9")),
        "{found:?}"
    );
    // Without a store the same tool acts twice, which this guarantee does not permit.
    is_found(&faults(none, order, "order").await, "`ship` happened 2 times instead of 1", is_crash);
}

/// A level that promises a result is not excused: `outcome_unknown` without its step is found.
#[tokio::test(start_paused = true)]
async fn the_bench_waits_as_long_as_the_server_says() {
    let check = async |level: Level, lease: u64, fault: Fault, unknown: bool| {
        let server = move |effects: &Effects| {
            let options = ClaimOptions::default().lease(Duration::from_secs(lease));
            let builder = Server::builder("shop", "1").state(effects.clone()).tool(order);
            level(builder.store(effects.shared::<MemoryStore>()).claim_options(options))
        };
        let begun = Instant::now();
        let call = Call::tool("order", ()).unwrap();
        let done = Bench::new(server).user(person()).run(&call, Some(&fault)).await;
        assert!(done.fault_occurred(), "{fault}");
        match done.outcome() {
            Outcome::Error(error) if unknown => {
                assert_eq!(error["data"]["reason"], "outcome_unknown", "{fault}, {lease} s: {error}")
            }
            _ => drop(done.expect_text("7 1 1")),
        }
        let waited = begun.elapsed().as_secs();
        assert!((lease - 1..=lease + 11).contains(&waited), "{fault}: {waited} of {lease} s");
    };
    for lease in [10, 30, 300] {
        // In the step `charge`, of which nobody knows if it had its effect.
        check(single_use, lease, Fault::Crash { leg: 2, polls: 1 }, true).await;
        check(write_ahead, lease, Fault::Crash { leg: 2, polls: 1 }, true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_sent_twice_has_its_stored_reply() {
    for level in [single_use as Level, write_ahead] {
        for timing in [
            DuplicateTiming::AfterReply,
            DuplicateTiming::Concurrent,
            DuplicateTiming::ConcurrentOnAnotherReplica,
        ] {
            let fault = Fault::Duplicate { leg: 2, timing };
            let done = bench(level, order).run(&Call::tool("order", ()).unwrap(), Some(&fault)).await;
            done.expect_text("7 1 1");
            assert_eq!((done.effects().runs("charge"), done.effects().runs("ship")), (1, 1), "{fault}");
        }
    }
}

/// The store in memory is one for all replicas of a run, or the bench says so.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "effects.shared::<MemoryStore>()")]
async fn a_store_for_each_replica() {
    let server = |effects: &Effects| {
        Server::builder("shop", "1")
            .state(effects.clone())
            .store(MemoryStore::new())
            .single_use(true)
            .tool(order)
    };
    let _ = Bench::new(server).user(person()).run_all_faults("order", ()).await;
}

/// A server with keys says itself that it is the only instance, as everywhere.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "single_instance")]
async fn a_store_in_memory_with_shared_keys() {
    let server = |effects: &Effects| {
        single_use(Server::builder("shop", "1").state(effects.clone()).tool(order))
            .keys(crate::common::ring(7))
            .store(effects.shared::<MemoryStore>())
    };
    let _ = Bench::new(server).call("order", ()).await;
}

/// A store with another clock: the lease does not end, and the finding says why.
#[tokio::test(start_paused = true)]
async fn a_store_with_another_clock() {
    let stopped = |effects: Effects| async move {
        drop(effects);
        MemoryStore::new()
    };
    let server = |effects: &Effects| {
        let store = effects.provided::<MemoryStore>();
        single_use(Server::builder("shop", "1").state(effects.clone()).store(store).tool(order))
    };
    let bench = Bench::new(server).user(person()).provide(stopped);
    let report = bench.only(is_crash).run_all_faults("order", ()).await;
    let found = report.findings();
    assert!(!found.is_empty());
    for finding in found {
        assert!(finding.text.contains("`Effects::store_clock`"), "{finding}");
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "use `Bench::provide`")]
async fn a_value_that_is_not_provided() {
    let server =
        |effects: &Effects| Server::builder("shop", "1").state(effects.provided::<String>()).tool(order);
    let _ = Bench::new(server).call("order", ()).await;
}
