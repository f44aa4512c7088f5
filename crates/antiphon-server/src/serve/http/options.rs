//! The options of an HTTP endpoint.

use crate::serve::http::{auth::ResourceServer, fields::AllowedOrigins};
use http::{HeaderMap, HeaderValue, header};
use std::{net::IpAddr, time::Duration};

/// The limits and names of an HTTP endpoint. Every option has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    pub(crate) path: String,
    pub(crate) health_path: Option<String>,
    pub(crate) liveness_path: Option<String>,
    pub(crate) metrics_path: Option<String>,
    pub(crate) max_body: usize,
    pub(crate) body_timeout: Duration,
    pub(crate) header_timeout: Duration,
    pub(crate) connections: usize,
    connections_per_address: Option<usize>,
    pub(crate) max_head: usize,
    pub(crate) drain_timeout: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) sessions: SessionOptions,
    pub(crate) auth: Option<ResourceServer>,
    /// True if any `Host` header is allowed.
    any_host: bool,
    /// The allowed `Host` headers besides the loopback names.
    hosts: Vec<String>,
    /// The origins of other hosts whose pages may use the endpoint.
    pub(crate) origins: AllowedOrigins,
    /// The names that were to be allowed, and that no request has.
    ineffective: Vec<String>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            health_path: None,
            liveness_path: None,
            metrics_path: None,
            max_body: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            header_timeout: Duration::from_secs(30),
            connections: 10_000,
            connections_per_address: None,
            max_head: 32 * 1024,
            drain_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            write_timeout: Duration::from_secs(30),
            sessions: SessionOptions::default(),
            auth: None,
            any_host: false,
            hosts: Vec::new(),
            origins: AllowedOrigins::default(),
            ineffective: Vec::new(),
        }
    }
}

impl HttpOptions {
    /// Sets the path at which [`serve_http`](crate::serve::http::serve_http) serves the endpoint; other paths are 404. Default:
    /// `/mcp`. An [`HttpService`](crate::serve::http::HttpService) answers on every path: the router in which it is mounted selects
    /// the path.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    /// Serves the readiness of the server at this path, such as `/readyz` or `/health`, for load balancers. Default: none. A GET or HEAD
    /// gets 200 and `ok`, or 503 while the server [drains](crate::Server::drain). The route is answered before `Host`, `Origin`
    /// and the token are checked, and reveals nothing else.
    #[must_use]
    pub fn health_path(mut self, path: &str) -> Self {
        self.health_path = Some(path.to_owned());
        self
    }

    /// Serves the liveness of the process at this path, such as `/livez`: 200 and `ok` as long as it answers, also while it drains. An
    /// orchestrator restarts a process that does not answer. Default: none. As with [`health_path`](Self::health_path), nothing is checked.
    #[must_use]
    pub fn liveness_path(mut self, path: &str) -> Self {
        self.liveness_path = Some(path.to_owned());
        self
    }

    /// Serves the [metrics](crate::Server::metrics) of this process at this path, such as `/metrics`, in the text format of Prometheus.
    /// Default: none. The route is answered before `Host`, `Origin` and the token are checked, so whoever reaches the port reads the
    /// counts: a proxy in front of the server keeps the path for itself.
    #[must_use]
    pub fn metrics_path(mut self, path: &str) -> Self {
        self.metrics_path = Some(path.to_owned());
        self
    }

    /// Allows this host name, such as `mcp.example.com`. By default only the loopback names are allowed: otherwise any web
    /// page could reach a local server by DNS rebinding.
    #[must_use]
    pub fn allow_host(mut self, host: &str) -> Self {
        if !is_host(host) {
            tracing::warn!(
                ?host,
                "allow_host: no request has this host: a name or an address, perhaps with a port"
            );
            self.ineffective.push(host.to_owned());
        }
        self.hosts.push(host.to_ascii_lowercase());
        self
    }

    /// Sets whether any host name is allowed, for a server behind a proxy that checks it. Default: `false`.
    #[must_use]
    pub fn any_host(mut self, any: bool) -> Self {
        self.any_host = any;
        self
    }

    /// Allows web pages of this origin, such as `https://app.example.com`, to send requests and to read the responses:
    /// browsers get the headers of CORS. By default only pages of loopback hosts, and of the hosts of
    /// [`allow_host`](Self::allow_host), can use the endpoint. `*` and `null` are no origins: they are ignored with a warning. The chapter `operations` of the guide has the details.
    #[must_use]
    pub fn allow_origin(mut self, origin: &str) -> Self {
        if !self.origins.add(origin) {
            self.ineffective.push(origin.to_owned());
        }
        self
    }

    /// Returns the texts that were passed to [`allow_host`](Self::allow_host) and [`allow_origin`](Self::allow_origin) and
    /// have no effect, because no request has such a host or origin: `*`, `null`, a URL with a path. For a program that does
    /// not start with a wrong setting.
    pub fn ineffective_names(&self) -> &[String] {
        &self.ineffective
    }

    /// Requires an access token for every request, and serves the metadata that names its authorization servers. Default: no
    /// authentication. This also [allows](Self::allow_host) the host of the resource.
    #[must_use]
    pub fn authorize(mut self, auth: ResourceServer) -> Self {
        self = self.allow_host(auth.authority());
        self.auth = Some(auth);
        self
    }

    /// Sets the maximum length of a body in bytes. Default: 4 MiB. Longer bodies are 413.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets the time in which a client must send its body. Default: 30 seconds. Slower bodies are 408.
    #[must_use]
    pub fn body_timeout(mut self, time: Duration) -> Self {
        self.body_timeout = time;
        self
    }

    /// Sets the time for which [`serve_http`](crate::serve::http::serve_http) waits for the head of a request on an open connection, the
    /// first or the next. Default: 30 seconds. Slower connections are closed.
    #[must_use]
    pub fn header_timeout(mut self, time: Duration) -> Self {
        self.header_timeout = time;
        self
    }

    /// Sets the maximum number of connections that [`serve_http`](crate::serve::http::serve_http) keeps open. Default: 10,000. If there
    /// are as many, the connection that has had no request for the longest time is closed to make room, of the address with
    /// most of such connections. If each has a request under way, new ones wait.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Sets the maximum number of connections that one address may have; the 64 first bits of an IPv6 address count. Default:
    /// three quarters of [`connections`](Self::connections). Behind a reverse proxy, which is one address, set it to
    /// the number of all connections. Beyond it, a connection of the same address without a request is closed to make room;
    /// if there is none, the new one is closed.
    #[must_use]
    pub fn connections_per_address(mut self, connections: usize) -> Self {
        self.connections_per_address = Some(connections.max(1));
        self
    }

    /// Sets the maximum length of the head of a request in bytes. Default: 32 KiB. Longer heads are 431.
    #[must_use]
    pub fn max_head(mut self, bytes: usize) -> Self {
        self.max_head = bytes;
        self
    }

    /// Sets the time in which requests must end after the shutdown begins. Default: 30 seconds.
    #[must_use]
    pub fn drain_timeout(mut self, time: Duration) -> Self {
        self.drain_timeout = time;
        self
    }

    /// Sets the time without an event after which a comment is sent on an event stream, so that no proxy closes it. Default:
    /// 15 seconds. If a request has no reply in this time, its response begins as an event stream with such a comment, because
    /// clients and proxies wait for the head of a response for about a minute. A client whose `Accept` lists JSON only waits for
    /// the reply.
    ///
    /// > servers are encouraged to periodically emit an SSE comment line [...] as a keep-alive
    #[must_use]
    pub fn keep_alive_interval(mut self, time: Duration) -> Self {
        self.keep_alive = time;
        self
    }

    /// Sets the time for which [`serve_http`](crate::serve::http::serve_http) waits for a client that does not read. Default: 30 seconds.
    /// Then the connection is closed and its request cancelled; a request of a legacy session continues.
    #[must_use]
    pub fn write_timeout(mut self, time: Duration) -> Self {
        self.write_timeout = time;
        self
    }

    /// Sets the time after which a legacy session without a request and without an open stream ends. Default: 30 minutes.
    /// Then its id is unknown (404), and the client opens another. A session that its client has not used after `initialize`
    /// ends after one minute.
    #[must_use]
    pub fn session_idle_timeout(mut self, time: Duration) -> Self {
        self.sessions.idle = time;
        self
    }

    /// Sets the maximum number of events, and of their bytes, that a legacy session stores for a client that reconnects.
    /// Default: 256 events, 1 MiB. Progress and log messages are discarded first; a client that missed another discarded
    /// event gets a 410. Events that a connected client has not yet read are stored beyond the maximum, four per stream.
    #[must_use]
    pub fn session_events(mut self, events: usize, bytes: usize) -> Self {
        (self.sessions.limits.events, self.sessions.limits.bytes) = (events, bytes);
        self
    }

    /// Sets the maximum number of bytes of events that all legacy sessions store together. Default: 32 MiB. Beyond it each
    /// stores only the events that a connected client has not yet read.
    #[must_use]
    pub fn all_session_events(mut self, bytes: usize) -> Self {
        self.sessions.limits.all_bytes = bytes;
        self
    }

    /// Sets the time that a legacy client waits before it resumes a stream that the server closed. Default: 1 second.
    #[must_use]
    pub fn session_retry_interval(mut self, time: Duration) -> Self {
        self.sessions.retry = time;
        self
    }

    /// Sets a prefix of the ids of legacy sessions, such as `a-` for the instance `a`: a load balancer can then route by
    /// `Mcp-Session-Id` without state. Default: none. Characters that are not visible ASCII are left out.
    #[must_use]
    pub fn session_prefix(mut self, prefix: &str) -> Self {
        // > The session ID **MUST** only contain visible ASCII characters (ranging from 0x21 to 0x7E).
        self.sessions.prefix = prefix.chars().filter(char::is_ascii_graphic).collect();
        self
    }

    /// Returns the maximum number of connections of one address.
    pub(crate) fn address_connections(&self) -> usize {
        self.connections_per_address.unwrap_or(self.connections - self.connections / 4)
    }

    /// Returns whether this `Host` is allowed.
    pub(crate) fn knows_host(&self, authority: &str) -> bool {
        if self.any_host {
            return true;
        }
        let host = without_port(authority);
        if is_loopback(host) {
            return true;
        }
        let host = host.to_ascii_lowercase();
        is_loopback(&host)
            || self.hosts.contains(&host)
            || self.hosts.contains(&authority.to_ascii_lowercase())
    }

    /// Returns the origin of the page that sent these headers, if the page may send requests and read the responses: a preflight
    /// and the request after it get the same answer. A browser sends one `Origin`.
    pub(crate) fn page_of(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return None };
        match self.origins.find(origin) {
            // As the program wrote it.
            Some(named) => Some(named.clone()),
            None => Some(origin.clone()).filter(|origin| self.knows_origin(origin)),
        }
    }

    /// Returns whether a page of this `Origin` may send requests.
    pub(crate) fn knows_origin(&self, origin: &HeaderValue) -> bool {
        if self.origins.find(origin).is_some() {
            return true;
        }
        let Ok(origin) = origin.to_str() else { return false };
        let origin = origin.to_ascii_lowercase();
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        match authority {
            None => false,
            // With any host allowed, other origins have to be allowed by name.
            Some(authority) if self.any_host => is_loopback(without_port(authority)),
            Some(authority) => self.knows_host(authority),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns whether a `Host` header may have this text: a name or an address, perhaps with a port.
fn is_host(text: &str) -> bool {
    let host = without_port(text);
    let is_address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|address| address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()));
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    is_address || (is_name && !host.is_empty())
}

/// `example.com` of `example.com:80`, `[::1]` of `[::1]:80`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.ends_with(':') => host,
        _ => authority,
    }
}

/// The limits of legacy sessions on one endpoint. The number of sessions and of handlers in them is limited by
/// [`Limits`](crate::Limits).
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    pub(crate) idle: Duration,
    pub(crate) retry: Duration,
    pub(crate) prefix: String,
    pub(crate) limits: EventLimits,
}

/// The limits of stored events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventLimits {
    /// The number of events of one session.
    pub(crate) events: usize,
    /// The bytes of one session.
    pub(crate) bytes: usize,
    /// The bytes of all sessions together. Beyond it, a session stores only the events that its readers have not taken.
    pub(crate) all_bytes: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(30 * 60),
            retry: Duration::from_secs(1),
            prefix: String::new(),
            limits: EventLimits { events: 256, bytes: 1024 * 1024, all_bytes: 32 * 1024 * 1024 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        identity::account::CLIENT,
        options::limits::{CLIENT_INFO, Limits},
        outbox::MAX_ALL_BYTES,
        quota::UNCOUNTED,
        serve::http::{connection::LARGE_HEADS, reply::REUSED_FIELDS},
        session::TASKS,
    };
    use antiphon_store::{MemoryTasks, TaskKey};
    use std::path::Path;

    #[test]
    fn hosts_and_origins() {
        let local = HttpOptions::default();
        let named =
            HttpOptions::default().allow_host("mcp.example.com").allow_origin("https://App.example.com/");
        let any = HttpOptions::default().any_host(true);
        for (options, host, known) in [
            (&local, "localhost", true),
            (&local, "LOCALHOST:8000", true),
            (&local, "127.0.0.1:1", true),
            (&local, "127.9.9.9", true),
            (&local, "[::1]:80", true),
            (&local, "[::1]", true),
            (&local, "example.com", false),
            (&local, "localhost.example.com", false),
            (&local, "127.0.0.1.example.com", false),
            (&local, "", false),
            (&named, "mcp.example.com:443", true),
            (&named, "MCP.example.com", true),
            (&named, "x.mcp.example.com", false),
            (&any, "whatever", true),
        ] {
            assert_eq!(options.knows_host(host), known, "{host}");
        }
        for (options, origin, known) in [
            (&local, "http://localhost:3000", true),
            (&local, "https://127.0.0.1", true),
            (&local, "http://evil.example.com", false),
            (&local, "null", false),
            (&local, "file://localhost", false),
            (&named, "https://mcp.example.com", true),
            (&named, "https://app.example.com", true),
            (&named, "http://app.example.com", false),
            (&any, "https://evil.example.com", false),
        ] {
            assert_eq!(options.knows_origin(&HeaderValue::from_static(origin)), known, "{origin}");
        }
    }

    #[test]
    fn a_name_that_no_request_has_is_ineffective() {
        let host: fn(HttpOptions, &str) -> HttpOptions = HttpOptions::allow_host;
        let origin: fn(HttpOptions, &str) -> HttpOptions = HttpOptions::allow_origin;
        for (allow, name, is_effective) in [
            (origin, "https://app.example.com", true),
            (origin, "*", false),
            (origin, "null", false),
            (origin, "https://*.example.com", false),
            (origin, "app.example.com/page", false),
            (host, "mcp.example.com", true),
            (host, "mcp_1.example.com:8443", true),
            (host, "[2001:db8::1]:80", true),
            (host, "203.0.113.1", true),
            (host, "", false),
            (host, "*", false),
            (host, "*.example.com", false),
            (host, "https://mcp.example.com", false),
            (host, "mcp.example.com/mcp", false),
            (host, "mcp.example.com ", false),
            (host, "mcp.example.com,other.example.com", false),
        ] {
            let options = allow(HttpOptions::default(), name);
            let expected: &[&str] = if is_effective { &[] } else { &[name] };
            assert_eq!(options.ineffective_names(), expected, "{name:?}");
        }
    }

    const KIB: usize = 1024;
    const MIB: usize = 1024 * KIB;

    /// The buffers of a connection: 16 KiB for reads, 16 KiB for bytes behind a body, 8 KiB for bytes that are written.
    const CONNECTION: usize = 40 * KIB;

    /// The map of header fields that a connection keeps between two requests: 104 bytes for each of its fields, and an index.
    const HEADER_MAP: usize = REUSED_FIELDS * 128;

    /// The bytes of each part in the worst case, from the default values.
    fn parts() -> Vec<(&'static str, usize)> {
        let (limits, http) = (Limits::default(), HttpOptions::default());
        vec![
            ("buffers of connections", http.connections * CONNECTION),
            // A head of 32 KiB, in a buffer that grew by half of it.
            ("large heads", LARGE_HEADS * (http.max_head + 16 * KIB)),
            ("header maps of connections", http.connections * HEADER_MAP),
            ("short requests", http.connections * UNCOUNTED),
            // The text, and the arguments that are decoded from it; a task for a subscription, and its copy on the way out.
            ("long requests, and tasks that are sent", 2 * limits.request_bytes),
            ("heads of requests in sessions", limits.session_handlers * 32 * KIB),
            ("records of calls in sessions", limits.session_handlers * limits.engine.state),
            ("clients of sessions", limits.sessions * CLIENT_INFO),
            ("clients of subscriptions", limits.subscriptions * CLIENT),
            ("events of sessions", http.sessions.limits.all_bytes),
            ("messages before replies", MAX_ALL_BYTES),
            // In the subscription, in the registry, and in a notification.
            ("URIs of subscriptions", 3 * limits.all_subscription_uri_bytes),
            ("tasks in memory", MemoryTasks::DEFAULT_MAX_BYTES),
            ("names of tasks in sessions", limits.sessions * TASKS * size_of::<TaskKey>()),
        ]
    }

    #[test]
    fn the_defaults_stay_below_a_gibibyte() {
        let bytes: usize = parts().iter().map(|(_, bytes)| bytes).sum();
        assert!(bytes < 1024 * MIB, "{:#?}", parts());
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
        // A published package does not have the document.
        let Ok(document) = std::fs::read_to_string(document) else { return };
        for (name, bytes) in parts() {
            let row = format!("| {name} | {} MiB |", bytes.div_ceil(MIB));
            assert!(document.contains(&row), "docs/limits.md lacks: {row}");
        }
        let sum = format!("| in all | {} MiB |", bytes.div_ceil(MIB));
        assert!(document.contains(&sum), "docs/limits.md lacks: {sum}");
    }
}
