//! The keys of an issuer: fetched once for all requests that wait, cached, and refreshed in time.

use crate::{
    algorithm::Algorithm,
    fetch::{discover, get},
    key_set::KeySet,
};
use antiphon_wire::escaped;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::sync::watch;

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
