//! Steps in a transaction: the writes of the body and the record of the step are committed together.
//!
//! Each case runs on SQLite, and with the feature `postgres` on PostgreSQL.

mod database;
mod lost_replies;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod script;

use self::{
    database::{Database, Sqlite},
    script::{End, Gate, Script},
};
use super::*;
use crate::common::{gate::soon, session::InSession};
use antiphon::{
    ShowError as _,
    seal::Principal,
    server::{Caller, Limits, flow::Winner},
    testing::store_contract::{FaultyStore, StoreFault},
};
use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

/// A tool `t` that orders.
fn shop<D: Database>(store: D::Store, script: &Arc<Script>) -> Tool {
    let script = Arc::clone(script);
    tool(move |ctx| {
        let (store, script) = (store.clone(), Arc::clone(&script));
        async move {
            script.before.pass().await;
            let order = D::order(ctx, "order", &store, &script).await;
            script.after.pass().await;
            Ok(order?)
        }
        .boxed()
    })
}

/// One instance of a server.
struct Instance {
    server: Server,
    calls: Arc<FaultyStore>,
}

impl Instance {
    async fn new<D: Database>(
        database: &D,
        script: &Arc<Script>,
        change: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let store = database.open().await;
        Self::with(shop::<D>(store.clone(), script), store, change)
    }

    fn with(tool: Tool, store: impl CallStore, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let calls = Arc::new(FaultyStore::new(Arc::new(store)));
        let store: Arc<dyn CallStore> = calls.clone();
        let server = built(tool, &store, |builder| {
            // A cancelled step ends at once, as with its process.
            change(builder.write_ahead(true).show_errors(true))
                .limits(Limits::default().step_grace(Duration::ZERO))
        });
        Self { server, calls }
    }

    /// Runs the leg until it waits at `gate`, and lets its process die there: it writes nothing more.
    async fn dies_at(&self, gate: &Gate, call: &ToolCall, hand: &ManualStoreClock) {
        gate.close();
        let mut leg = Box::pin(deliver(call, &self.server, Value::Null));
        tokio::select! {
            reply = &mut leg => panic!("{reply}"),
            () = soon(gate.reached()) => {}
        }
        self.calls.set_down(Some(StoreFault::Refused));
        let operations = self.calls.operations();
        drop(leg);
        // The server tries to give the leg back.
        soon(async {
            while self.calls.operations() == operations {
                tokio::task::yield_now().await;
            }
        })
        .await;
        gate.open();
        self.calls.set_down(None);
        hand.advance(Duration::from_secs(31));
    }
}

/// A call after its first leg, which runs no step.
async fn begun(server: &Server) -> ToolCall {
    let mut call = ToolCall::new(json!({}));
    let reply = call.leg(server, Value::Null).await;
    assert!(is_state_only(&reply), "{reply}");
    call
}

async fn the_writes_and_the_record_are_committed_together<D: Database>(database: D) {
    let script = Arc::new(Script::default());
    let one = Instance::new(&database, &script, |builder| builder).await;
    let two = Instance::new(&database, &script, |builder| builder).await;
    let call = begun(&one.server).await;
    assert_eq!(database.orders().await, 0);
    let reply = deliver(&call, &one.server, Value::Null).await;
    assert_eq!(result_text(&reply), "order 1", "{reply}");
    for instance in [&one, &two] {
        assert_eq!(deliver(&call, &instance.server, Value::Null).await, reply);
    }
    assert_eq!((database.orders().await, script.runs()), (1, 1));
    // Another call is another order.
    let other = begun(&two.server).await;
    assert_eq!(result_text(&deliver(&other, &two.server, Value::Null).await), "order 2");
    assert_eq!(database.orders().await, 2);
}

async fn an_error_is_rolled_back_and_recorded<D: Database>(database: D) {
    for (end, text) in [(End::Error, "sold out"), (End::TooLarge, "was rolled back")] {
        let script = Arc::new(Script::default().ends([end]));
        let one = Instance::new(&database, &script, |builder| builder).await;
        let call = begun(&one.server).await;
        // The process dies after the step, so only the record of the step is left.
        one.dies_at(&script.after, &call, database.hand()).await;
        assert_eq!((database.orders().await, script.runs()), (0, 1), "{end:?}");
        let reply = deliver(&call, &one.server, Value::Null).await;
        assert!(result_text(&reply).contains(text), "{end:?}: {reply}");
        // A result that is too large is an error that names the limit.
        let limit = reply["error"]["data"]["limit"].as_str();
        assert!(reply["result"]["isError"] == true || limit == Some("step_result"), "{end:?}: {reply}");
        assert_eq!((database.orders().await, script.runs()), (0, 1), "{end:?}");
    }
}

async fn an_attempt_without_an_outcome_is_rolled_back_and_runs_again<D: Database>(database: D) {
    for (before, end) in (0..).zip([End::Again, End::Panic]) {
        let script = Arc::new(Script::default().ends([end]));
        let one = Instance::new(&database, &script, |builder| builder).await;
        let call = begun(&one.server).await;
        let reply = deliver(&call, &one.server, Value::Null).await;
        assert_eq!(reason(&reply), "step_failed", "{end:?}: {reply}");
        assert_eq!(database.orders().await, before, "{end:?}");
        let reply = deliver(&call, &one.server, Value::Null).await;
        assert_eq!(result_text(&reply), "order 2", "{end:?}: {reply}");
        assert_eq!(database.orders().await, before + 1, "{end:?}");
    }
}

async fn a_crash_before_the_commit_leaves_nothing_and_after_it_everything<D: Database>(database: D) {
    let script = Arc::new(Script::default());
    let one = Instance::new(&database, &script, |builder| builder).await;
    let two = Instance::new(&database, &script, |builder| builder).await;
    let call = begun(&one.server).await;
    one.dies_at(&script.before, &call, database.hand()).await;
    one.dies_at(&script.body, &call, database.hand()).await;
    assert_eq!(database.orders().await, 0);
    two.dies_at(&script.after, &call, database.hand()).await;
    let runs = script.runs();
    assert_eq!(database.orders().await, 1);
    let reply = deliver(&call, &one.server, Value::Null).await;
    assert_eq!(result_text(&reply), format!("order {runs}"), "{reply}");
    assert_eq!((database.orders().await, script.runs()), (1, runs), "the body does not run again");
}

async fn a_run_that_was_taken_over_writes_nothing<D: Database>(database: D) {
    let script = Arc::new(Script::default());
    let one = Instance::new(&database, &script, |builder| builder).await;
    let two = Instance::new(&database, &script, |builder| builder).await;
    let call = begun(&one.server).await;
    script.before.close();
    let take_over = async {
        soon(script.before.reached()).await;
        database.hand().advance(Duration::from_secs(31));
        let reply = deliver(&call, &two.server, Value::Null).await;
        script.before.open();
        reply
    };
    let (zombie, other) = tokio::join!(deliver(&call, &one.server, Value::Null), take_over);
    assert_eq!(result_text(&other), "order 1", "{other}");
    assert_eq!(reason(&zombie), "in_flight", "{zombie}");
    assert_eq!((database.orders().await, script.runs()), (1, 2), "the second body was rolled back");
    assert_eq!(deliver(&call, &one.server, Value::Null).await, other);
}

async fn two_deliveries_at_once_have_one_effect<D: Database>(database: D) {
    let script = Arc::new(Script::default());
    let one = Instance::new(&database, &script, |builder| builder).await;
    let two = Instance::new(&database, &script, |builder| builder).await;
    let call = begun(&one.server).await;
    let (first, second) =
        tokio::join!(deliver(&call, &one.server, Value::Null), deliver(&call, &two.server, Value::Null));
    assert_eq!(result_text(&first), "order 1", "{first}");
    assert_eq!(first, second);
    assert_eq!((database.orders().await, script.runs()), (1, 1));
}

/// The store of the step is not that of the server, or nothing is claimed: the author reads why, and nothing is written.
async fn a_step_that_cannot_be_in_the_servers_transaction_is_refused<D: Database>(database: D) {
    let (script, store) = (Arc::new(Script::default()), database.open().await);
    let refused = |reply: &Value, text: &str| {
        let message = reply["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(text), "{text}: {reply}");
    };
    let other = Instance::with(shop::<D>(store.clone(), &script), database.open().await, |b| b);
    let call = begun(&other.server).await;
    refused(&deliver(&call, &other.server, Value::Null).await, "the store of this server");
    let single_use =
        Instance::with(shop::<D>(store.clone(), &script), store.clone(), |builder| builder.single_use(true));
    let call = begun(&single_use.server).await;
    refused(&deliver(&call, &single_use.server, Value::Null).await, "write_ahead");
    let none = Instance::with(shop::<D>(store.clone(), &script), store.clone(), |builder| {
        builder.write_ahead(false)
    });
    refused(&ToolCall::new(json!({})).leg(&none.server, Value::Null).await, "write_ahead");
    let anonymous = Instance::new(&database, &script, |builder| builder.accepts_state_only(|_| false)).await;
    refused(&ToolCall::new(json!({})).leg(&anonymous.server, Value::Null).await, "a caller who signs in");
    assert_eq!((database.orders().await, script.runs()), (0, 0));
}

/// Each request of a session is claimed: what was paid before the transaction is paid once.
async fn a_session_has_the_transaction_too<D: Database>(database: D) {
    let script = Arc::new(Script::default());
    let claims = Instance::new(&database, &script, |builder| builder).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let before = database.orders().await;
        let mut session = InSession::open(&claims.server, version, json!({})).await;
        for _ in 0..2 {
            let reply = session.asks(1, "tools/call", json!({"name": "t", "arguments": {}})).await;
            assert_eq!(result_text(&reply), format!("order {}", before + 1), "{version}: {reply}");
        }
        assert_eq!(database.orders().await, before + 1, "{version}");
    }
}

/// A client that accepts no state only is known by its principal and the id of its request.
async fn a_first_request_of_a_known_client_is_claimed_too<D: Database>(database: D) {
    let script = Arc::new(Script::default());
    let one = Instance::new(&database, &script, |builder| {
        builder
            .accepts_state_only(|_| false)
            .bind_principal(|_: &Caller<'_>| Ok::<_, std::convert::Infallible>(Some(Principal::user("anna"))))
    })
    .await;
    for _ in 0..2 {
        let reply = ToolCall::new(json!({})).leg(&one.server, Value::Null).await;
        assert_eq!(result_text(&reply), "order 1", "{reply}");
    }
    assert_eq!((database.orders().await, script.runs()), (1, 1));
}

/// Orders twice at once beside a question, at a checkpoint, in a select and in a scope.
fn large_shop<D: Database>(store: D::Store, script: &Arc<Script>) -> Tool {
    let script = Arc::clone(script);
    tool(move |ctx| {
        let (store, script) = (store.clone(), Arc::clone(&script));
        async move {
            let (one, two, picked) = tokio::join!(
                D::order(ctx, "one", &store, &script),
                D::order(ctx, "two", &store, &script),
                ctx.elicit::<Pick>("Which?").key("pick"),
            );
            let (one, two, picked) = (one?, two?, picked?);
            ctx.checkpoint().now().await;
            let below = ctx.scope("below");
            let won = ctx
                .select(
                    "first",
                    (D::order(ctx, "three", &store, &script), D::order(&below, "one", &store, &script)),
                )
                .await;
            let won = match won {
                Winner::A(order) | Winner::B(order) => order?,
                Winner::C(never) | Winner::D(never) => match never {},
            };
            script.after.pass().await;
            Ok(format!("{one}, {two}, {won}: {}", picked.name))
        }
        .boxed()
    })
}

async fn such_a_step_is_a_step_like_others<D: Database>(database: D) {
    let script = Arc::new(Script::default());
    let mut instances = Vec::new();
    for _ in 0..2 {
        let store = database.open().await;
        instances.push(Instance::with(large_shop::<D>(store.clone(), &script), store, |builder| builder));
    }
    let mut call = ToolCall::new(json!({}));
    let reply = call.leg(&instances[0].server, Value::Null).await;
    assert!(reply["result"]["inputRequests"]["pick"].is_object(), "{reply}");
    assert_eq!(database.orders().await, 0, "the first leg is not claimed");
    let reply = call.leg(&instances[1].server, pick("mug")).await;
    assert!(is_state_only(&reply), "{reply}");
    assert_eq!(database.orders().await, 2);
    // The steps of the select run in this leg, which its process does not survive.
    instances[0].dies_at(&script.after, &call, database.hand()).await;
    let orders = database.orders().await;
    let reply = deliver(&call, &instances[1].server, Value::Null).await;
    let text = result_text(&reply);
    assert!(text.starts_with("order ") && text.ends_with(": mug"), "{reply}");
    assert_eq!((database.orders().await, script.runs() as i64), (orders, orders), "no body ran twice");
    assert_eq!(deliver(&call, &instances[0].server, Value::Null).await, reply);
}

macro_rules! on_both {
    ($($case:ident,)*) => {
        $(
            mod $case {
                #[tokio::test]
                async fn on_sqlite() {
                    super::$case(super::Sqlite::new()).await;
                }
            }
        )*

        /// All cases, each in a schema of its own: the database is started once.
        #[cfg(all(unix, feature = "postgres"))]
        #[tokio::test]
        async fn on_postgres() {
            let server = crate::postgres_server::Server::start("at-most-once-tx");
            let database = async || postgres::Postgres::new(server.url("postgres")).await;
            $($case(database().await).await;)*
            a_run_that_is_taken_over_in_its_body_writes_nothing(database().await).await;
            a_connection_that_breaks_in_the_body_is_no_outcome(database().await).await;
        }
    };
}

on_both! {
    the_writes_and_the_record_are_committed_together,
    an_error_is_rolled_back_and_recorded,
    an_attempt_without_an_outcome_is_rolled_back_and_runs_again,
    a_crash_before_the_commit_leaves_nothing_and_after_it_everything,
    a_run_that_was_taken_over_writes_nothing,
    two_deliveries_at_once_have_one_effect,
    a_step_that_cannot_be_in_the_servers_transaction_is_refused,
    a_session_has_the_transaction_too,
    a_first_request_of_a_known_client_is_claimed_too,
    such_a_step_is_a_step_like_others,
}

/// The case is PostgreSQL's alone: with SQLite nobody else can write while a body runs.
#[cfg(all(unix, feature = "postgres"))]
async fn a_run_that_is_taken_over_in_its_body_writes_nothing(database: postgres::Postgres) {
    let script = Arc::new(Script::default());
    let one = Instance::new(&database, &script, |builder| builder).await;
    let two = Instance::new(&database, &script, |builder| builder).await;
    let call = begun(&one.server).await;
    script.body.close();
    let take_over = async {
        soon(script.body.reached()).await;
        database.hand().advance(Duration::from_secs(31));
        let reply = deliver(&call, &two.server, Value::Null).await;
        script.body.open();
        reply
    };
    let (zombie, other) = tokio::join!(deliver(&call, &one.server, Value::Null), take_over);
    assert_eq!(result_text(&other), "order 1", "{other}");
    assert_eq!(reason(&zombie), "in_flight", "{zombie}");
    assert_eq!((database.orders().await, script.runs()), (1, 2), "the second body was rolled back");
}

/// An error of the database that another attempt avoids is not recorded.
#[cfg(all(unix, feature = "postgres"))]
async fn a_connection_that_breaks_in_the_body_is_no_outcome(database: postgres::Postgres) {
    let (store, runs) = (database.open().await, Arc::new(AtomicUsize::new(0)));
    let (own, counter) = (store.clone(), Arc::clone(&runs));
    let handler = tool(move |ctx| {
        let (store, runs) = (own.clone(), Arc::clone(&counter));
        async move {
            let order = ctx.in_transaction("order", &store, async |tx| {
                tx.execute("INSERT INTO orders (item) VALUES ('mug')", &[]).await?;
                if runs.fetch_add(1, SeqCst) == 0 {
                    tx.execute("SELECT pg_terminate_backend(pg_backend_pid())", &[]).await?;
                }
                Ok("ordered".to_owned())
            });
            Ok(order.await?)
        }
        .boxed()
    });
    let one = Instance::with(handler, store, |builder| builder);
    let call = begun(&one.server).await;
    let reply = deliver(&call, &one.server, Value::Null).await;
    assert_eq!(reason(&reply), "step_failed", "{reply}");
    assert_eq!(database.orders().await, 0);
    assert_eq!(result_text(&deliver(&call, &one.server, Value::Null).await), "ordered");
    assert_eq!((database.orders().await, runs.load(SeqCst)), (1, 2));
}

/// A file that is busy is no outcome; writes that SQLite refuses to commit are one.
#[tokio::test]
async fn errors_of_sqlite() {
    use antiphon::store::rusqlite;
    let database = Sqlite::new();
    let (store, runs) = (database.open().await, Arc::new(AtomicUsize::new(0)));
    let (own, counter) = (store.clone(), Arc::clone(&runs));
    let handler = tool(move |ctx| {
        let (store, runs) = (own.clone(), Arc::clone(&counter));
        async move {
            let order = ctx.in_transaction("order", &store, move |tx| {
                if runs.fetch_add(1, SeqCst) == 0 {
                    let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                    return Err(rusqlite::Error::SqliteFailure(busy, None).into());
                }
                tx.execute_batch(
                    "INSERT INTO orders (item) VALUES ('mug');
                    CREATE TABLE parts (id INTEGER PRIMARY KEY);
                    CREATE TABLE uses (part INTEGER REFERENCES parts (id) DEFERRABLE INITIALLY DEFERRED);
                    INSERT INTO uses VALUES (1);",
                )?;
                Ok("ordered".to_owned())
            });
            order.await.show()
        }
        .boxed()
    });
    let one = Instance::with(handler, store, |builder| builder);
    let call = begun(&one.server).await;
    let reply = deliver(&call, &one.server, Value::Null).await;
    assert_eq!(reason(&reply), "step_failed", "{reply}");
    let reply = deliver(&call, &one.server, Value::Null).await;
    assert!(result_text(&reply).contains("FOREIGN KEY"), "{reply}");
    assert_eq!(deliver(&call, &one.server, Value::Null).await, reply);
    assert_eq!((database.orders().await, runs.load(SeqCst)), (0, 2));
}
