//! The connection: one for all operations, opened again when it breaks.

use std::time::Duration;

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{Client, ScriptInvocation, TlsCertificates};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

use super::error::{is_connection, of_script};
use super::options::RedisOptions;
use crate::error::{StoreError, StoreErrorKind, Written};

#[derive(Clone)]
pub(super) struct Link {
    connection: ConnectionManager,
    timeout: Duration,
}

/// The reply of a script.
pub(super) struct Reply {
    pub(super) values: Vec<Vec<u8>>,
    /// True if the script was sent twice, because the first connection broke.
    pub(super) repeated: bool,
}

impl Link {
    /// Connects, and checks that the server does not remove keys when its memory is full.
    pub(super) async fn connect(url: &str, options: &RedisOptions) -> Result<Self, StoreError> {
        let fail = |error| of_script("connect", Written::No, error);
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(options.timeout))
            .set_response_timeout(Some(options.timeout))
            .set_number_of_retries(2);
        let connect = async {
            let connection = ConnectionManager::new_with_config(client(url, options)?, config).await?;
            let memory: String =
                ::redis::cmd("INFO").arg("memory").query_async(&mut connection.clone()).await?;
            Ok((connection, memory))
        };
        let connected = timeout_at(Instant::now() + options.timeout, connect).await;
        let (connection, memory) = connected
            .map_err(|elapsed| StoreError::read(StoreErrorKind::Timeout, "connect", elapsed))?
            .map_err(fail)?;
        if evicts(&memory) && !options.allow_eviction {
            let text = "the server removes keys when its memory is full: set maxmemory-policy to noeviction";
            return Err(StoreError::read(StoreErrorKind::Invalid, "connect", text));
        }
        Ok(Self { connection, timeout: options.timeout })
    }

    /// Runs a script. `if_lost` is the effect of a script without a reply.
    pub(super) async fn run(
        &self,
        operation: &'static str,
        if_lost: Written,
        script: &ScriptInvocation<'_>,
    ) -> Result<Reply, StoreError> {
        let deadline = Instant::now() + self.timeout;
        let mut repeated = false;
        loop {
            let mut connection = self.connection.clone();
            match timeout_at(deadline, script.invoke_async(&mut connection)).await {
                Ok(Ok(values)) => return Ok(Reply { values, repeated }),
                // Every operation may be repeated, so the caller need not know.
                Ok(Err(error)) if is_connection(&error) && !repeated => repeated = true,
                Ok(Err(error)) => {
                    let error = of_script(operation, if_lost, error);
                    return Err(if repeated { error.with_written(if_lost) } else { error });
                }
                Err(elapsed) => {
                    return Err(StoreError::new(StoreErrorKind::Timeout, if_lost, operation, elapsed));
                }
            }
        }
    }
}

fn client(url: &str, options: &RedisOptions) -> Result<Client, ::redis::RedisError> {
    if !url.starts_with("rediss") {
        return Client::open(url);
    }
    // The client takes the provider of the process. If the program chose one, it stays.
    if CryptoProvider::get_default().is_none() {
        drop(ring::default_provider().install_default());
    }
    let certificates = TlsCertificates { client_tls: None, root_cert: options.root_certificates.clone() };
    Client::build_with_tls(url, certificates)
}

/// Returns true if the server has a limit of its memory and removes keys to stay within it.
fn evicts(memory: &str) -> bool {
    let value = |name: &str| {
        memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let limited = value("maxmemory").is_some_and(|limit| limit != "0");
    limited && value("maxmemory_policy").is_some_and(|policy| policy != "noeviction")
}

#[cfg(test)]
mod tests {
    use super::evicts;

    #[test]
    fn a_server_that_removes_keys_is_recognized() {
        for (memory, expected) in [
            ("# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", false),
            ("maxmemory:1000\r\nmaxmemory_policy:noeviction\r\n", false),
            ("maxmemory:1000\r\nmaxmemory_human:1K\r\nmaxmemory_policy:volatile-ttl\r\n", true),
            ("", false),
        ] {
            assert_eq!(evicts(memory), expected, "{memory:?}");
        }
    }
}
