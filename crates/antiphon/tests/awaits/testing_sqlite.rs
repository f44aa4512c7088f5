//! The bench and SQLite, with a paused clock: each run has a database of its own.
#![cfg(feature = "macros")]

use antiphon::{
    Form, Result,
    server::{Ctx, Server, ServerBuilder, State},
    store::{SqliteOptions, SqliteStore, rusqlite::Connection},
    testing::{Bench, Effects, Fault, Guarantee, ScriptedUser},
    tool,
};
use serde_json::json;
use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

#[derive(serde::Deserialize, Form)]
struct Size {
    size: u32,
}

/// The database of one run, removed with its value.
struct Database {
    folder: PathBuf,
    store: SqliteStore,
}

impl Database {
    async fn new(effects: Effects) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("antiphon-bench-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let options = SqliteOptions::default().clock(effects.store_clock());
        let store = SqliteStore::open(folder.join("calls.db"), options).await.unwrap();
        let database = Self { folder, store };
        database.connect().execute_batch("CREATE TABLE orders (size INTEGER)").unwrap();
        database
    }

    fn connect(&self) -> Connection {
        Connection::open(self.folder.join("calls.db")).unwrap()
    }

    fn orders(&self) -> i64 {
        self.connect().query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Asks, then charges.
#[tool]
async fn order(ctx: &Ctx, shop: State<Effects>) -> Result<String> {
    let Size { size } = ctx.elicit("Which size?").await?;
    let charged = ctx.step("charge", async |s| Ok(shop.perform("charge", s.key()).await)).await?;
    Ok(format!("{size} {charged}"))
}

/// Asks, then orders in the transaction of its record.
#[tool(write_ahead)]
async fn transact(ctx: &Ctx, store: State<SqliteStore>) -> Result<String> {
    let Size { size } = ctx.elicit("Which size?").await?;
    let order = ctx.in_transaction("order", &*store, move |tx| {
        Ok(tx.execute("INSERT INTO orders (size) VALUES (?1)", [size])?)
    });
    Ok(format!("{size} {}", order.await?))
}

/// Asks, pays, and writes that down in the transaction of its record.
#[tool(write_ahead)]
async fn reimburse(ctx: &Ctx, shop: State<Effects>, store: State<SqliteStore>) -> Result<String> {
    let Size { size } = ctx.elicit("Which size?").await?;
    let pay = ctx.step("bank", async |s| Ok(shop.perform("bank", s.key()).await));
    let find = async |key: String| Ok(shop.all().iter().any(|effect| effect.key == key).then_some(1));
    let paid = pay.reconcile(find).await?;
    let mark = ctx.in_transaction("mark", &*store, move |tx| {
        Ok(tx.execute("INSERT INTO orders (size) VALUES (?1)", [size])?)
    });
    Ok(format!("{size} {paid} {}", mark.await?))
}

fn bench(change: fn(ServerBuilder) -> ServerBuilder) -> Bench {
    let server = move |effects: &Effects| {
        let store = effects.provided::<Database>().store.clone();
        let builder = Server::builder("shop", "1").state(effects.clone()).state(store.clone()).store(store);
        change(builder.tool(order).tool(transact).tool(reimburse))
    };
    Bench::new(server).provide(Database::new).user(ScriptedUser::new().accept("size", json!({"size": 7})))
}

#[tokio::test(start_paused = true)]
async fn single_use() {
    let report = bench(|builder| builder.single_use(true)).run_all_faults("order", ()).await;
    report.expect_same_result().expect_effects(Guarantee::AtMostOnce);
    report.plain().expect_text("7 1");
}

#[tokio::test(start_paused = true)]
async fn write_ahead() {
    let report = bench(|builder| builder.write_ahead(true)).run_all_faults("order", ()).await;
    report.expect_same_result().expect_effects(Guarantee::AtMostOnce);
}

#[tokio::test(start_paused = true)]
async fn large_records() {
    let report = bench(|builder| builder.spill(true)).run_all_faults("order", ()).await;
    report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
}

/// Returns true for a session that was lost: its call has ordered once or not at all, and the next one once.
#[track_caller]
fn is_two_calls(fault: &Fault, orders: i64) -> bool {
    let is_lost = matches!(fault, Fault::SessionCrash { .. });
    assert!(!is_lost || (1..=2).contains(&orders), "{fault}: {orders}");
    is_lost
}

/// A step in a transaction is never unknown, and happens exactly once whatever goes wrong.
#[tokio::test(start_paused = true)]
async fn in_a_transaction() {
    let report = bench(|builder| builder).run_all_faults("transact", ()).await;
    report.expect_same_result();
    assert_eq!(report.unknown().count(), 0);
    for (fault, done) in report.runs() {
        let ended = done.text() == "7 1";
        let orders = done.effects().provided::<Database>().orders();
        if is_two_calls(fault, orders) {
            continue;
        }
        assert_eq!(orders, i64::from(ended), "{fault}: {:?}", done.outcome());
    }
}

/// A payment before a transaction: once, for a client of 2025 too.
#[tokio::test(start_paused = true)]
async fn a_payment_before_a_transaction() {
    let report = bench(|builder| builder).run_all_faults("reimburse", ()).await;
    report.expect_same_result().expect_effects(Guarantee::AtMostOnce);
    assert_eq!(report.unknown().count(), 0);
    for (fault, done) in report.runs() {
        let ended = done.text() == "7 1 1";
        let orders = done.effects().provided::<Database>().orders();
        if is_two_calls(fault, orders) {
            continue;
        }
        assert_eq!(orders, i64::from(ended), "{fault}");
    }
    assert!(report.runs().any(|(fault, done)| *fault == Fault::Session && done.fault_occurred()));
}

/// The clock of tokio runs, too.
#[tokio::test]
async fn with_a_clock_that_runs() {
    bench(|builder| builder.single_use(true)).call("order", ()).await.expect_text("7 1");
    bench(|builder| builder).call("transact", ()).await.expect_text("7 1");
}
