//! Two replicas of the demo server behind a proxy that gives each request to the next replica. The tests of this
//! package and the peers in interop/ use this program.
//!
//! The program prints the addresses of the proxy and of the backend. Then it reads commands from standard input:
//! `deploy old` and `deploy new` replace every replica by one of that build, and `replicas` changes nothing; the reply
//! to each is the names of the replicas. The reply to `addresses` is the URL of each replica. At the end of standard
//! input, the program ends and stops all its processes. A replica that begins the third portion of a `load_shedding` is
//! drained and replaced.
//!
//! Try it: `cargo run -p antiphon-examples --bin fleet`, and in another terminal `antiphon tools URL`.

#![allow(clippy::print_stdout, reason = "the program prints its addresses")]

use antiphon_demo::Build;
use antiphon_examples::{Fleet, FleetOptions, Proxy, Result, serve_if_replica};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::main]
async fn main() -> Result<()> {
    if serve_if_replica().await? {
        return Ok(());
    }
    let fleet = Fleet::start(FleetOptions { drain_at: Some(2), ..FleetOptions::default() }).await?;
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
            other => return Err(format!("unknown command {other:?}").into()),
        }
        println!("{}", fleet.names().join(" "));
    }
    fleet.stop().await
}
