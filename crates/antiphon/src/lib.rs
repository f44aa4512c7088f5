#![doc = include_str!("lib.md")]

#[cfg(feature = "client")]
pub mod client;
pub mod guide;
pub mod prelude;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod wire;

#[cfg(feature = "server")]
pub use antiphon_server::{Clock, Error, Form, FormChoice, ManualClock, OneField, Result, ShowError};

#[cfg(all(feature = "macros", feature = "server"))]
pub use antiphon_macros::{Form, prompt, resolver, resource, server, tool};

#[cfg(feature = "server")]
#[doc(hidden)]
pub use antiphon_server::__expanded;

#[cfg(all(feature = "client", feature = "server"))]
pub mod memory {
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
}

#[cfg(feature = "server")]
pub mod seal {
    //! The keys and identities of sealed state, as the signatures of this crate need them. The sealer itself is in the crate
    //! `antiphon-seal`.

    pub use antiphon_seal::{
        CallId, Codec, CodecError, Digest, EntropyError, KeyError, KeyFile, KeyFileError, KeyRing, Principal,
        SecretKey, TextFault, utc,
    };
}

#[cfg(feature = "server")]
pub mod serve {
    //! The transports of a server: HTTP, standard input and output, any pair of streams.

    #[doc(inline)]
    pub use antiphon_server::serve::*;
}
