//! A server on its own standard input and output.

use crate::{
    serve::stdio::{
        serving::{Settings, serve},
        signals::stopped,
        start::ServeStreams,
        std_streams::{StdInput, StdOutput},
    },
    server::message_service::MessageService,
};
use futures_util::future::BoxFuture;

/// Returns a future that serves on standard input and output: until the input ends, or until SIGTERM or SIGINT (Ctrl-C).
/// Then the server [drains](crate::Server::drain), because the process ends: its tasks go to the next process at once, and
/// requests under way have [`drain_timeout`](ServeStreams::drain_timeout) to end.
///
/// > The server **MUST NOT** write anything to its `stdout` that is not a valid MCP message.
///
/// ```no_run
/// use antiphon::{serve::stdio::serve_stdio, server::Server};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("orders", "1.0").build()?;
/// serve_stdio(server).drain_timeout(Duration::from_secs(2)).await?;
/// # Ok(())
/// # }
/// ```
///
/// Standard input and output have a thread each, so that the runtime can end while one of them waits. The handlers of the two
/// signals stay installed, unless [`with_graceful_shutdown`](ServeStreams::with_graceful_shutdown) takes their place.
///
/// # Errors
/// If the streams fail.
///
/// # Panics
/// In a tokio runtime without I/O, where it cannot wait for signals.
pub fn serve_stdio(server: impl MessageService) -> ServeStreams<'static> {
    let start = |mut settings: Settings<'static>| {
        Box::pin(async move {
            let (input, output) = (StdInput::open()?, StdOutput::open()?);
            settings.shutdown.get_or_insert_with(|| Box::pin(stopped()));
            serve(input, output, server, settings).await
        }) as BoxFuture<'static, _>
    };
    ServeStreams::new(start).drain_at_end(true)
}
