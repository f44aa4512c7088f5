//! The options of a Redis store and its connection: one for all operations, opened again when it breaks.

use crate::{
    clock::StoreClock,
    error::{StoreError, StoreErrorKind, Written},
};
use redis::{
    Client, ErrorKind, RedisError, ScriptInvocation, TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

#[derive(Clone)]
pub(super) struct Link {
    pub(super) connection: ConnectionManager,
    /// Opens the connections of watches.
    pub(super) client: Client,
    pub(super) timeout: Duration,
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
            let client = client(url, options)?;
            let connection = ConnectionManager::new_with_config(client.clone(), config).await?;
            let memory: String =
                ::redis::cmd("INFO").arg("memory").query_async(&mut connection.clone()).await?;
            Ok((connection, client, memory))
        };
        let connected = timeout_at(Instant::now() + options.timeout, connect).await;
        let (connection, client, memory) = connected
            .map_err(|elapsed| StoreError::read(StoreErrorKind::Timeout, "connect", elapsed))?
            .map_err(fail)?;
        if evicts(&memory) && !options.allow_eviction {
            let text = "the server removes keys when its memory is full: set maxmemory-policy to noeviction";
            return Err(StoreError::read(StoreErrorKind::Invalid, "connect", text));
        }
        Ok(Self { connection, client, timeout: options.timeout })
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

/// Returns the error of a script. `if_lost` is the effect of a script without a reply.
pub(super) fn of_script(operation: &'static str, if_lost: Written, error: RedisError) -> StoreError {
    let (kind, written) = match error.code() {
        Some(code) => (of_code(code), Written::No),
        None if error.is_timeout() => (StoreErrorKind::Timeout, if_lost),
        None if is_connection(&error) => (StoreErrorKind::Unreachable, if_lost),
        None => match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => {
                (StoreErrorKind::Invalid, Written::No)
            }
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => (StoreErrorKind::Corrupt, if_lost),
            _ => (StoreErrorKind::Other, if_lost),
        },
    };
    StoreError::new(kind, written, operation, error)
}

/// Returns true if the connection broke, so that another connection may work.
pub(super) fn is_connection(error: &RedisError) -> bool {
    !error.is_timeout()
        && (error.is_io_error() || error.is_connection_dropped() || error.is_connection_refusal())
}

/// Returns the kind of a script that the server refused, before its first write.
fn of_code(code: &str) -> StoreErrorKind {
    match code {
        "OOM" => StoreErrorKind::Full,
        // A replica, a server that loads its data, that has too few replicas, or that cannot write to its disk.
        "READONLY" | "LOADING" | "NOREPLICAS" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY"
        | "MISCONF" => StoreErrorKind::Unreachable,
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "MOVED" | "ASK" => StoreErrorKind::Invalid,
        "WRONGTYPE" => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Other,
    }
}

/// The options of a [`RedisStore`](super::RedisStore).
#[derive(Clone, Debug)]
pub struct RedisOptions {
    pub(super) key_prefix: String,
    pub(super) timeout: Duration,
    pub(super) allow_eviction: bool,
    pub(super) root_certificates: Option<Vec<u8>>,
    /// A clock of a test, in the place of the server's.
    pub(super) test_clock: Option<StoreClock>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            key_prefix: "antiphon:".to_owned(),
            timeout: Duration::from_secs(5),
            allow_eviction: false,
            root_certificates: None,
            test_clock: None,
        }
    }
}

impl RedisOptions {
    /// Sets the beginning of all keys; `antiphon:` by default.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefix = prefix.into();
        self
    }

    /// Sets the maximum time of one operation, the wait for a connection included; 5 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets whether a server is accepted that removes keys when its memory is full; false by default. Such a server forgets
    /// claims, and a leg may run twice.
    #[must_use]
    pub fn allow_eviction(mut self, allow: bool) -> Self {
        self.allow_eviction = allow;
        self
    }

    /// Sets the certificate authorities, as PEM, in the place of the system's: for URLs that begin with `rediss`.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }

    /// Sets the clock of a test, so that it need not wait, and can compare moments. Every instance on the same keys must have the same
    /// one.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn test_clock(mut self, clock: StoreClock) -> Self {
        self.test_clock = Some(clock);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
