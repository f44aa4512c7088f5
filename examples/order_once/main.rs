//! An order that is written exactly once, although the process of the server is killed twice: before it commits the order,
//! and after that, before it replies.
//!
//! The order and the record of the step are one transaction in one file. The client sends the same request again until it
//! has the result.
//!
//! Try it: `cargo run -p antiphon-examples --bin order_once`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::{
    Form,
    client::{
        Call, CallProgress, Client,
        transport::{ChildCommand, ChildTransport},
    },
    seal::{KeyRing, SecretKey},
    serve::stdio::serve_stdio,
    server::{ClaimOptions, Ctx, Limits, Server, State},
    store::{SqliteOptions, SqliteStore, rusqlite::Connection},
    tool,
    wire::AskSupport,
};
use antiphon_examples::Result;
use serde_json::json;
use std::{
    env,
    path::{Path, PathBuf},
    process::abort,
    time::Duration,
};

/// The variable with the key of all processes.
const KEYS: &str = "ANTIPHON_KEYS";

#[derive(serde::Deserialize, Form)]
struct Confirm {
    ok: bool,
}

/// The place at which the process of a server dies.
#[derive(Clone, Copy, PartialEq)]
enum Crash {
    BeforeCommit,
    AfterCommit,
    Never,
}

/// Orders an item.
#[tool(write_ahead)]
async fn order(
    ctx: &Ctx,
    store: State<SqliteStore>,
    crash: State<Crash>,
    item: String,
) -> antiphon::Result<String> {
    let question = format!("Order a {item}?");
    let Confirm { ok: true } = ctx.elicit(question).key("confirm").await? else {
        return Ok("Nothing ordered.".to_owned());
    };
    let (crash, ordered) = (*crash, item.clone());
    let number: i64 = ctx
        .in_transaction("order", &*store, move |tx| {
            tx.execute("INSERT INTO orders (item) VALUES (?1)", [ordered])?;
            if crash == Crash::BeforeCommit {
                abort();
            }
            Ok(tx.last_insert_rowid())
        })
        .await?;
    if crash == Crash::AfterCommit {
        abort();
    }
    Ok(format!("Order {number}: a {item}."))
}

/// Serves the tool on the standard streams, from the calls and orders of one file.
async fn serve(file: &Path, crash: Crash) -> Result<()> {
    let store = SqliteStore::open(file, SqliteOptions::default()).await?;
    Connection::open(file)?
        .execute_batch("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)")?;
    let server = Server::builder("orders", "1.0")
        .keys(KeyRing::parse_list(&env::var(KEYS)?)?)
        .store(store.clone())
        .state(store)
        .state(crash)
        // A short lease: the next process takes over soon.
        .claim_options(ClaimOptions::default().lease(Duration::from_millis(400)))
        .limits(Limits::default().step_grace(Duration::from_millis(100)))
        .tool(order)
        .build()?;
    Ok(serve_stdio(server).await?)
}

/// Starts a server as a child, and a client of it.
fn client(file: &Path, key: &str, crash: &str) -> Result<Client> {
    let server = ChildCommand::new(env::current_exe()?).arg(file).arg(crash).env(KEYS, key).restarts(0);
    let client = Client::builder("order-once", "1.0").declare(AskSupport::ELICITATION);
    Ok(client.connect(ChildTransport::spawn(server)?))
}

fn orders(file: &Path) -> Result<i64> {
    Ok(Connection::open(file)?.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [file, crash] = &words[..] {
        let crash = match crash.as_str() {
            "before" => Crash::BeforeCommit,
            "after" => Crash::AfterCommit,
            _ => Crash::Never,
        };
        return serve(Path::new(file), crash).await;
    }
    let folder = env::temp_dir().join(format!("antiphon-order-once-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let shown = show(folder.join("shop.db")).await;
    std::fs::remove_dir_all(&folder)?;
    shown
}

async fn show(file: PathBuf) -> Result<()> {
    let key = SecretKey::random()?.to_base64url();
    let first = client(&file, &key, "before")?;
    let CallProgress::Pending(mut pending) =
        first.begin(Call::tool("order", json!({"item": "mug"}))?).await?
    else {
        return Err("the tool did not ask".into());
    };
    pending.accept("confirm", &json!({"ok": true}))?;
    // The same request, to one process after the other.
    for (crash, place) in [("before", "before the commit"), ("after", "after the commit")] {
        let client = client(&file, &key, crash)?;
        let lost = client.resume(pending.clone()).await.is_err();
        println!("killed {place}: reply lost: {lost}, orders: {}", orders(&file)?);
    }
    let CallProgress::Done(finished) = client(&file, &key, "never")?.resume(pending).await? else {
        return Err("the tool asked again".into());
    };
    println!(
        "{}",
        finished.into_tool().and_then(|result| result.first_text().map(str::to_owned)).unwrap_or_default()
    );
    println!("orders: {}", orders(&file)?);
    Ok(())
}
