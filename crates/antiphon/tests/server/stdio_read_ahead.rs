//! Reading during a write of a server on streams: a line is handled as soon as it is complete, though nothing follows.

use antiphon::{
    serve::stdio::serve_streams,
    server::{Ctx, NoArguments, Server, Tool},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, duplex},
    time::{sleep, timeout},
};

fn request(id: u32, method: &str, params: Value, meta: Value) -> String {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (name, value) in meta.as_object().into_iter().flatten() {
        request["params"]["_meta"][name] = value.clone();
    }
    format!("{request}\n")
}

fn progress_server() -> Server {
    let tells = async |ctx: &Ctx, _: NoArguments| {
        ctx.report_progress(1.0, None, Some("the only one"));
        std::future::pending::<()>().await;
    };
    Server::builder("test", "1").tool(Tool::new("tells", tells)).build().unwrap()
}

/// A request that comes while the answer to `first` is being written is answered, though nothing comes after it.
async fn check(what: &str, first: &str) {
    // Nothing the server says fits at once.
    let ((mut says, input), (output, hears)) = (duplex(64 * 1024), duplex(16));
    let serving = tokio::spawn(serve_streams(input, output, progress_server()));
    says.write_all(first.as_bytes()).await.unwrap();
    let mut hears = BufReader::with_capacity(1, hears);
    hears.read_u8().await.unwrap();
    says.write_all(request(2, "server/discover", json!({}), json!({})).as_bytes()).await.unwrap();
    // Time goes on when all that can be read is read.
    sleep(Duration::from_millis(1)).await;
    let answered = async {
        let mut line = String::new();
        while hears.read_line(&mut line).await.unwrap() > 0 {
            if line.contains(r#""id":2"#) {
                return;
            }
            line.clear();
        }
    };
    assert!(timeout(Duration::from_secs(60), answered).await.is_ok(), "{what}: no answer");
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn what_was_read_ahead_is_looked_at() {
    let call =
        request(1, "tools/call", json!({"name": "tells", "arguments": {}}), json!({"progressToken": "t"}));
    check("a notification", &call).await;
    check("a refusal that needs no waiting", "garbage\n").await;
    check("a reply", &request(1, "server/discover", json!({}), json!({}))).await;
}
