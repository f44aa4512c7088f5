//! Two replicas of the demo server behind a proxy that gives each request to the next one, for whoever wants to drive
//! them: the tests of this package, and the peers in interop/.
//!
//! It prints where the proxy and the world listen, and answers the lines of its standard input: `deploy old` and
//! `deploy new` put that build in the place of every replica, `replicas` changes nothing, and each is answered by the names
//! of the replicas; `addresses` is answered by the URL of each. It ends with its standard input, and everything that it has
//! started ends with it. The replica that comes to the third portion of a `load_shedding` is drained there, and another one
//! takes its place.
//!
//! Try it: `cargo run -p antiphon-examples --bin fleet`, and in another terminal `antiphon tools URL`.

#![allow(clippy::print_stdout, reason = "it says where it listens")]

use antiphon_demo::Build;
use antiphon_examples::{Fleet, Plan, Proxy, Result, serve_if_replica};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(Plan { drain_at: Some(2), ..Plan::default() }).await?;
    let proxy = Proxy::start(Arc::clone(&fleet), |_| {}).await?;
    println!("listening on {}", proxy.url());
    println!("backend at http://{}/", fleet.backend());

    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match line.as_str() {
            "deploy old" => fleet.deploy(Build::Old).await?,
            "deploy new" => fleet.deploy(Build::New).await?,
            "replicas" => {}
            "addresses" => {
                println!("{}", fleet.urls().join(" "));
                continue;
            }
            other => return Err(format!("what is {other:?}?").into()),
        }
        println!("{}", fleet.names().join(" "));
    }
    fleet.stop().await
}
