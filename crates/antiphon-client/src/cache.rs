//! Results that may be used again: kept for the time that the server allows, or until it reports a change.
//!
//! > A cached response is identified by the request method together with the request parameters that affect the result
//!
//! The rest of a request, `_meta` with version and capabilities, is the same for all requests of one client; when the version
//! changes, all results are dropped.

use antiphon_wire::{Ttl, lock::Lock, method};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard},
    time::Duration,
};
use tokio::time::Instant;

/// The maximum number of results that are kept.
const MAX_ENTRIES: usize = 512;
/// The maximum size of all results that are kept, in bytes of text.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The longest time that a result is kept, also if the server allows more: longer than any process runs, and short enough not
/// to overflow the clock.
const MAX_TTL: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A list that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    /// Resources and their templates.
    Resources,
}

/// The request that a kept result answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Discover,
    /// One page of a list, by the list's method and the page's cursor.
    Page(&'static str, Option<String>),
    /// A resource that was read, by its URI.
    Resource(String),
}

impl Key {
    fn part(&self) -> Part {
        match self {
            Self::Discover => Part::Discover,
            Self::Page(method::TOOLS_LIST, _) => Part::Tools,
            Self::Page(method::PROMPTS_LIST, _) => Part::Prompts,
            Self::Page(..) => Part::Resources,
            Self::Resource(_) => Part::Contents,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Discover | Self::Page(_, None) => 0,
            Self::Page(_, Some(text)) | Self::Resource(text) => text.len(),
        }
    }
}

/// The results that are dropped together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Discover,
    Tools,
    Prompts,
    Resources,
    Contents,
}

/// The number of times that a part was dropped. A result that was requested in an earlier generation is not stored: it may be
/// older than the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// The kept results of one client.
pub(crate) struct Cache {
    enabled: bool,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    /// The number of uses so far: finds the least recently used entry.
    uses: u64,
    generations: [u64; 5],
}

struct Entry {
    text: Arc<RawValue>,
    until: Instant,
    used: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    #[serde(default)]
    ttl_ms: Option<Ttl>,
}

impl Cache {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, state: Lock::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The result, while it is fresh.
    ///
    /// > Clients **MUST NOT** serve a cached response for a request whose method or parameters differ from the request
    /// > that produced it.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<RawValue>> {
        if !self.enabled {
            return None;
        }
        let mut state = self.state();
        state.uses += 1;
        let uses = state.uses;
        let entry = state.entries.get_mut(key)?;
        // > The response is considered **fresh** while: now < t_received + ttlMs
        if Instant::now() < entry.until {
            entry.used = uses;
            return Some(Arc::clone(&entry.text));
        }
        state.remove(key);
        None
    }

    /// Returns the generation of the part of this key. Read it before the request is sent.
    pub(crate) fn generation(&self, key: &Key) -> Generation {
        Generation(self.state().generations[key.part() as usize])
    }

    /// Stores a result that has just arrived, for the time in its `ttlMs`.
    ///
    /// The cache scope is not checked: one client is one authorization context, so results of both scopes may be stored.
    pub(crate) fn put(&self, key: Key, asked: Generation, result: &RawValue) {
        if !self.enabled {
            return;
        }
        // > If `ttlMs` is absent, clients **SHOULD** assume a default of `0` (immediately stale)
        let hints: Option<Hints> = serde_json::from_str(result.get()).ok();
        let Some(Ttl(ttl @ 1..)) = hints.and_then(|hints| hints.ttl_ms) else {
            self.state().remove(&key);
            return;
        };
        let now = Instant::now();
        let until = now + Duration::from_millis(ttl).min(MAX_TTL);
        let mut state = self.state();
        state.remove(&key);
        let weight = key.weight() + result.get().len();
        if weight > MAX_BYTES || state.generations[key.part() as usize] != asked.0 {
            return;
        }
        state.make_room(weight, now);
        state.bytes += weight;
        state.uses += 1;
        let used = state.uses;
        state.entries.insert(key, Entry { text: Arc::from(result.to_owned()), until, used });
    }

    /// Drops a list that changed.
    ///
    /// > the notification **invalidates** the cached response and it should be considered immediately stale.
    pub(crate) fn forget_list(&self, kind: ListKind) {
        self.forget(match kind {
            ListKind::Tools => Part::Tools,
            ListKind::Prompts => Part::Prompts,
            ListKind::Resources => Part::Resources,
        });
    }

    /// Drops the pages of one list, whose cursors are not valid any more. Results of requests under way are still stored.
    pub(crate) fn drop_pages(&self, method: &'static str) {
        self.state().retain(|key| !matches!(key, Key::Page(of, _) if *of == method));
    }

    /// Drops every kept result. Results of requests under way are still stored.
    pub(crate) fn drop_entries(&self) {
        self.state().retain(|_| false);
    }

    /// Drops a resource that changed, and those that contain it.
    ///
    /// > This might be a sub-resource of the one that the client actually subscribed to.
    pub(crate) fn forget_resource(&self, uri: &str) {
        let mut state = self.state();
        state.generations[Part::Contents as usize] += 1;
        state.retain(|key| !matches!(key, Key::Resource(kept) if uri.starts_with(kept.as_str())));
    }

    /// Drops the contents of all resources: any of them may have changed.
    pub(crate) fn forget_contents(&self) {
        self.forget(Part::Contents);
    }

    /// Drops everything. The generation of the tools changes as well, so that their schemas are not used again.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.generations.iter_mut().for_each(|generation| *generation += 1);
        state.retain(|_| false);
    }

    fn forget(&self, part: Part) {
        let mut state = self.state();
        state.generations[part as usize] += 1;
        state.retain(|key| key.part() != part);
    }
}

impl State {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= key.weight() + entry.text.get().len();
        }
    }

    fn retain(&mut self, keep: impl Fn(&Key) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|key, entry| {
            let kept = keep(key);
            if !kept {
                *bytes -= key.weight() + entry.text.get().len();
            }
            kept
        });
    }

    /// Drops stale entries, then the least recently used ones, until `weight` fits. Reads every entry: there are few, and the
    /// table is rarely full.
    fn make_room(&mut self, weight: usize, now: Instant) {
        while self.entries.len() >= MAX_ENTRIES || self.bytes + weight > MAX_BYTES {
            let worst = self.entries.iter().min_by_key(|(_, entry)| (entry.until > now, entry.used));
            let Some(key) = worst.map(|(key, _)| key.clone()) else { return };
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(bytes: usize) -> Box<RawValue> {
        let text = format!(r#"{{"ttlMs":60000,"text":"{}"}}"#, "x".repeat(bytes));
        RawValue::from_string(text).unwrap()
    }

    fn put(cache: &Cache, key: &Key, bytes: usize) {
        cache.put(key.clone(), cache.generation(key), &result(bytes));
    }

    fn resource(uri: impl Into<String>) -> Key {
        Key::Resource(uri.into())
    }

    fn page(method: &'static str, cursor: Option<&str>) -> Key {
        Key::Page(method, cursor.map(str::to_owned))
    }

    fn all() -> Vec<Key> {
        vec![
            Key::Discover,
            page(method::TOOLS_LIST, None),
            page(method::TOOLS_LIST, Some("1")),
            page(method::PROMPTS_LIST, None),
            page(method::RESOURCES_LIST, None),
            page(method::RESOURCE_TEMPLATES_LIST, None),
            resource("file:///a"),
            resource("file:///a/b"),
            resource("file:///c"),
        ]
    }

    fn assert_counted(cache: &Cache) {
        let state = cache.state();
        let bytes = state.entries.iter().map(|(key, entry)| key.weight() + entry.text.get().len());
        assert_eq!(state.bytes, bytes.sum::<usize>());
    }

    /// Checks what is gone after `forget`, by its place in `all`: of results that are kept, and of those that are on their
    /// way.
    fn check(forget: impl Fn(&Cache), gone: &[usize], on_their_way: &[usize]) {
        let keys = all();
        let cache = Cache::new(true);
        keys.iter().for_each(|key| put(&cache, key, 1));
        forget(&cache);
        let missing = |cache: &Cache| -> Vec<usize> {
            keys.iter().enumerate().filter(|(_, key)| cache.get(key).is_none()).map(|(n, _)| n).collect()
        };
        assert_eq!(missing(&cache), gone);
        let cache = Cache::new(true);
        let asked: Vec<_> = keys.iter().map(|key| cache.generation(key)).collect();
        forget(&cache);
        keys.iter().zip(asked).for_each(|(key, asked)| cache.put(key.clone(), asked, &result(1)));
        assert_eq!(missing(&cache), on_their_way);
        assert_counted(&cache);
    }

    #[tokio::test(start_paused = true)]
    async fn what_changed_is_forgotten_and_not_kept_if_it_was_asked_for_before() {
        check(|cache| cache.forget_list(ListKind::Tools), &[1, 2], &[1, 2]);
        check(|cache| cache.forget_list(ListKind::Prompts), &[3], &[3]);
        check(|cache| cache.forget_list(ListKind::Resources), &[4, 5], &[4, 5]);
        check(|cache| cache.forget_resource("file:///a/b"), &[6, 7], &[6, 7, 8]);
        check(|cache| cache.forget_resource("file:///b"), &[], &[6, 7, 8]);
        check(Cache::clear, &[0, 1, 2, 3, 4, 5, 6, 7, 8], &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        check(|cache| cache.drop_pages(method::TOOLS_LIST), &[1, 2], &[]);
        check(Cache::drop_entries, &[0, 1, 2, 3, 4, 5, 6, 7, 8], &[]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_there_is_room_for() {
        let kept = |cache: &Cache, key: &Key| cache.get(key).is_some();
        // Entries: the least recently used entry is removed.
        let cache = Cache::new(true);
        for n in 0..MAX_ENTRIES + 100 {
            put(&cache, &resource(format!("a:{n}")), 1);
            assert!(kept(&cache, &resource("a:0")));
        }
        assert_eq!(cache.state().entries.len(), MAX_ENTRIES);
        assert!(!kept(&cache, &resource("a:1")) && kept(&cache, &resource("a:300")));
        // Bytes.
        let cache = Cache::new(true);
        let [a, b, c, large] = ["a", "b", "c", "large"].map(resource);
        put(&cache, &a, MAX_BYTES * 2 / 5);
        put(&cache, &b, MAX_BYTES * 2 / 5);
        assert!(kept(&cache, &a));
        put(&cache, &c, MAX_BYTES * 2 / 5);
        assert_eq!([&a, &b, &c].map(|key| kept(&cache, key)), [true, false, true]);
        // What alone is too large is not kept, and displaces nothing.
        put(&cache, &large, MAX_BYTES);
        assert_eq!([&a, &c, &large].map(|key| kept(&cache, key)), [true, true, false]);
        // What is stale gives way first.
        let cache = Cache::new(true);
        put(&cache, &a, MAX_BYTES * 2 / 5);
        tokio::time::advance(Duration::from_secs(30)).await;
        put(&cache, &b, MAX_BYTES * 2 / 5);
        assert!(kept(&cache, &a));
        tokio::time::advance(Duration::from_secs(45)).await;
        put(&cache, &c, MAX_BYTES * 2 / 5);
        assert_eq!([&a, &b, &c].map(|key| kept(&cache, key)), [false, true, true]);
        // The same key once more takes its own room.
        put(&cache, &c, MAX_BYTES * 2 / 5);
        assert!(kept(&cache, &b));
        assert_counted(&cache);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_cache_nothing_is_kept() {
        let cache = Cache::new(false);
        put(&cache, &Key::Discover, 1);
        assert!(cache.get(&Key::Discover).is_none() && cache.state().entries.is_empty());
    }
}
