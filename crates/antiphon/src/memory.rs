//! A client of a server in the same process, without sockets: for tests, and for programs that use tools of their own.

use crate::{
    client::{Client, ClientBuilder, transport::memory},
    serve::{MessageService, stdio::serve_streams},
};
use std::time::Duration;

/// Returns a client that is connected to this server in memory.
///
/// ```
/// use antiphon::{client::Client, memory, server::Server, tool};
///
/// /// Adds two numbers.
/// #[tool]
/// async fn add(a: i64, b: i64) -> String {
///     (a + b).to_string()
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("sums", "1.0").tool(add).build()?;
/// let client = memory::connect(server, Client::builder("example", "1.0"));
/// let result = client.call_tool("add", serde_json::json!({"a": 2, "b": 3})).await?;
/// assert_eq!(result.first_text(), Some("5"));
/// # Ok(()) }
/// ```
///
/// The framing is that of stdio, so the server cannot see a difference. It is served by a task, which ends when the client
/// and its clones are dropped or closed. A clone of the server may serve other clients at the same time.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn connect(server: impl MessageService, client: ClientBuilder) -> Client {
    let (transport, input, output) = memory::duplex();
    // Nobody reads replies after the client is gone, nor hears of streams that fail then.
    let serving = serve_streams(input, output, server).drain_timeout(Duration::ZERO);
    tokio::spawn(async move { drop(serving.await) });
    client.connect(transport)
}
