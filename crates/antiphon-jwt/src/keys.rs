//! The keys of an issuer: fetched once for all requests that wait, cached, and refreshed in time.

use crate::key_set::{Algorithm, KeySet};
use antiphon_connect::Connector;
use antiphon_wire::{check_secure, escaped};
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde::Deserialize;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::sync::watch;
use url::Url;

/// The age at which keys are refreshed in the background.
const FRESH: Duration = Duration::from_secs(5 * 60);

/// The age at which a token waits for the refresh.
const CURRENT: Duration = Duration::from_secs(10 * 60);

/// The age at which keys are not used any more.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// The minimum time between two fetches, so that tokens with invented keys cause no more.
const PAUSE: Duration = Duration::from_secs(30);

/// The minimum time between two fetches while there are no keys at all.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The maximum time of a fetch, with all its requests.
const FETCH_TIME: Duration = Duration::from_secs(5);

/// The source of keys.
pub(crate) enum KeySource {
    Here(Arc<KeySet>),
    Url(String),
    /// The URL in the metadata of this issuer.
    Issuer(String),
}

pub(crate) struct Keys {
    source: KeySource,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The keys, with the time of the fetch.
    kept: Option<(Arc<KeySet>, SystemTime)>,
    tried: Option<SystemTime>,
    /// Closed when the present fetch ends.
    flight: Option<watch::Receiver<()>>,
}

impl Keys {
    pub(crate) fn new(source: KeySource) -> Self {
        Self { source, state: Mutex::default() }
    }

    /// Returns the keys, with this one among them if the issuer has it.
    pub(crate) async fn get(
        self: &Arc<Self>,
        algorithm: Algorithm,
        id: Option<&str>,
        now: SystemTime,
    ) -> Result<Arc<KeySet>, &'static str> {
        if let KeySource::Here(keys) = &self.source {
            return Ok(Arc::clone(keys));
        }
        if let Some((keys, age)) = self.cached(now)
            && age < CURRENT
            && !keys.candidates(algorithm, id).is_empty()
        {
            if age >= FRESH {
                drop(self.refresh(now));
            }
            return Ok(keys);
        }
        if let Some(mut flight) = self.refresh(now) {
            // Nothing is ever sent: it ends by being closed.
            while flight.changed().await.is_ok() {}
        }
        self.cached(now).map(|(keys, _)| keys).ok_or("the keys of its issuer cannot be had")
    }

    /// Returns the keys that may still be used, with their age.
    fn cached(&self, now: SystemTime) -> Option<(Arc<KeySet>, Duration)> {
        let state = self.lock();
        let (keys, since) = state.kept.as_ref()?;
        let age = age(*since, now);
        (age < KEPT).then(|| (Arc::clone(keys), age))
    }

    /// Returns the present fetch, or begins one; `None` if it is too early. The fetch continues without a waiting
    /// request: a client that disconnects must not keep others from the keys.
    fn refresh(self: &Arc<Self>, now: SystemTime) -> Option<watch::Receiver<()>> {
        let mut state = self.lock();
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.has_changed().is_ok()) {
            return Some(flight.clone());
        }
        let pause = if state.kept.is_some() { PAUSE } else { FIRST_PAUSE };
        if state.tried.is_some_and(|tried| age(tried, now) < pause) {
            return None;
        }
        let (landed, flight) = watch::channel(());
        (state.tried, state.flight) = (Some(now), Some(flight.clone()));
        drop(state);
        let keys = Arc::clone(self);
        tokio::spawn(async move {
            keys.fetch(now).await;
            drop(landed);
        });
        Some(flight)
    }

    async fn fetch(&self, now: SystemTime) {
        let fetched = tokio::time::timeout(FETCH_TIME, async {
            let text = match &self.source {
                KeySource::Here(_) => return Err("nothing is fetched".to_owned()),
                KeySource::Url(url) => get(url).await?,
                KeySource::Issuer(issuer) => get(&discover(issuer).await?).await?,
            };
            KeySet::parse(&text)
        });
        let source = match &self.source {
            KeySource::Here(_) => "",
            KeySource::Url(name) | KeySource::Issuer(name) => name,
        };
        match fetched.await.unwrap_or_else(|_elapsed| Err(format!("no answer within {FETCH_TIME:?}"))) {
            Ok(set) => self.lock().kept = Some((Arc::new(set), now)),
            Err(cause) => {
                tracing::error!(source = %escaped(source), cause = %escaped(&cause), "the keys of an issuer could not be fetched")
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the age. After a clock was turned back, keys are old, so that none is used for too long.
fn age(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or(CURRENT)
}

/// The maximum length of a response in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// The maximum time to connect.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Returns the body at this URL as text. Redirects are not followed.
pub(crate) async fn get(url: &str) -> Result<String, String> {
    let parsed = Url::parse(url).map_err(|fault| format!("{url}: {fault}"))?;
    check_secure(parsed.scheme(), parsed.host_str()).map_err(|fault| format!("{url}: {fault}"))?;
    let uri: Uri = parsed.as_str().parse().map_err(|fault| format!("{url}: {fault}"))?;
    let connector = Connector::new(&uri, CONNECT_TIME)?;
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::get(uri)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("antiphon/", env!("CARGO_PKG_VERSION")))
        .body(Empty::new())
        .map_err(|fault| fault.to_string())?;
    let response = client.request(request).await.map_err(|fault| format!("{url}: {fault}"))?;
    if response.status() != StatusCode::OK {
        return Err(format!("{url}: {}", response.status()));
    }
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
    let body = body.map_err(|fault| format!("{url}: {fault}"))?.to_bytes();
    String::from_utf8(body.into()).map_err(|_| format!("{url}: not text"))
}

/// Returns the URL of the keys in the metadata of an issuer.
///
/// > clients **MUST** attempt multiple well-known endpoints when discovering authorization server metadata.
async fn discover(issuer: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let mut faults = Vec::new();
    for place in well_known(issuer) {
        let found = get(&place).await.and_then(|text| {
            serde_json::from_str::<Metadata>(&text).map_err(|fault| format!("{place}: {fault}"))
        });
        match found {
            // > the `issuer` value in the document **MUST** be identical to the issuer identifier used to construct the
            // > well-known URL. If they differ, the client **MUST NOT** use the metadata.
            Ok(found) if found.issuer != issuer => faults.push(format!("{place}: of another issuer")),
            Ok(found) => return Ok(found.jwks_uri),
            Err(fault) => faults.push(fault),
        }
    }
    Err(faults.join("; "))
}

/// Returns the possible URLs of the metadata of an issuer, in the order to be tried.
fn well_known(issuer: &str) -> Vec<String> {
    let issuer = issuer.trim_end_matches('/');
    let host_at = issuer.find("://").map_or(0, |at| at + 3);
    let (origin, path) = issuer.split_at(issuer[host_at..].find('/').map_or(issuer.len(), |at| host_at + at));
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{issuer}/.well-known/openid-configuration"));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_metadata_is() {
        let host = "https://auth.example.com";
        for (issuer, expected) in [
            ("", &["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"][..]),
            ("/", &["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
            (
                "/tenant1",
                &[
                    "/.well-known/oauth-authorization-server/tenant1",
                    "/.well-known/openid-configuration/tenant1",
                    "/tenant1/.well-known/openid-configuration",
                ],
            ),
        ] {
            let expected: Vec<String> = expected.iter().map(|path| format!("{host}{path}")).collect();
            assert_eq!(well_known(&format!("{host}{issuer}")), expected);
        }
    }
}
