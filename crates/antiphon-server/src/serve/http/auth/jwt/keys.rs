//! The keys of an issuer while time goes by: fetched once for all who wait, kept, and fetched anew in time.

use crate::serve::http::auth::jwt::{
    algorithm::Algorithm,
    fetch::{discover, get},
    key_set::KeySet,
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::sync::watch;

/// After so long they are fetched anew, and nobody waits for it.
const FRESH: Duration = Duration::from_secs(5 * 60);

/// After so long a token waits until they are.
const CURRENT: Duration = Duration::from_secs(10 * 60);

/// After so long without an answer from the issuer they do not count any more.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// Between two fetches: a flood of tokens with invented keys reaches the issuer no more often.
const PAUSE: Duration = Duration::from_secs(30);

/// The same, as long as there is no key at all.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// How long one fetch may take, with all its requests.
const FETCH_TIME: Duration = Duration::from_secs(5);

/// Where keys come from.
pub(crate) enum KeySource {
    Here(Arc<KeySet>),
    Url(String),
    /// By its metadata.
    Issuer(String),
}

pub(crate) struct Keys {
    source: KeySource,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// With the time they were fetched at.
    kept: Option<(Arc<KeySet>, SystemTime)>,
    tried: Option<SystemTime>,
    /// Closed when the fetch under way has ended.
    flight: Option<watch::Receiver<()>>,
}

impl Keys {
    pub(crate) fn new(source: KeySource) -> Self {
        Self { source, state: Mutex::default() }
    }

    /// The keys, with this one among them if the issuer has it.
    pub(crate) async fn get(
        self: &Arc<Self>,
        algorithm: Algorithm,
        id: Option<&str>,
        now: SystemTime,
    ) -> Result<Arc<KeySet>, &'static str> {
        if let KeySource::Here(keys) = &self.source {
            return Ok(Arc::clone(keys));
        }
        if let Some((keys, age)) = self.kept(now)
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
        self.kept(now).map(|(keys, _)| keys).ok_or("the keys of its issuer cannot be had")
    }

    /// The keys that still count, with their age.
    fn kept(&self, now: SystemTime) -> Option<(Arc<KeySet>, Duration)> {
        let state = self.lock();
        let (keys, since) = state.kept.as_ref()?;
        let age = age(*since, now);
        (age < KEPT).then(|| (Arc::clone(keys), age))
    }

    /// The fetch under way, or a new one; `None` if it is too early for one. It goes on if nobody waits for it: who goes
    /// away must not be able to keep others from the keys.
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
            Err(cause) => tracing::error!(source, cause, "the keys of an issuer could not be fetched"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clock that was turned back makes everything old, so that nothing is kept for too long.
fn age(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or(CURRENT)
}
