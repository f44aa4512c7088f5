//! A list of offers: items in the order of registration, each with its definition written once, and the cursors of its pages.
//!
//! A cursor is a position at which a list continues. It holds all the data, so that any instance can continue, in 40 characters for
//! names of any length.

use crate::{
    errors::BuildError,
    feed::ListKind,
    identity::account::{CallerInfo, is_scope},
    offer::{PerCaller, Profile, raw},
    options::Settings,
    session::SessionResult,
};
use antiphon_wire::{CacheScope, ProtocolVersion, escaped};
use serde::{
    Deserialize, Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq as _},
};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    collections::HashMap,
    fmt::{self, Write as _},
    sync::Arc,
};

/// An item of a list.
pub(crate) trait ListItem: Sized + Send + Sync + 'static {
    /// The item's definition in the list.
    type Definition: Serialize + Clone;
    /// The member of the result that holds the list.
    const MEMBER: &'static str;
    /// The list that change notifications name.
    const KIND: ListKind;
    /// The words for two items with the same key, after "there are two", followed by the key in backquotes.
    const TWO: &'static str;
    /// The advice after that message.
    const ADVICE: &'static str;

    fn definition(&self) -> &Self::Definition;
    /// Returns the name or URI of the item.
    fn key(&self) -> &str;
    fn settings(&self) -> &Settings;
    fn per_caller(&self) -> &PerCaller<Self::Definition>;
    /// Puts the parts of a definition that calls are checked by back as they were before.
    fn keep(before: Self::Definition, changed: &mut Self::Definition);
    /// Returns the definition for sessions of this version, if it differs from [`definition`](Self::definition).
    fn definition_for(&self, version: &ProtocolVersion) -> Option<Self::Definition> {
        let _ = version;
        None
    }
    /// Checks that the item can be offered.
    ///
    /// # Errors
    /// Says what to change.
    fn check(&self) -> Result<(), BuildError>;
}

/// An item of a list, with its written definition.
pub(crate) struct Entry<T> {
    key: Arc<str>,
    digest: u64,
    item: Arc<T>,
    written: Arc<RawValue>,
}

impl<T: ListItem> Entry<T> {
    pub(crate) fn new(item: T) -> Result<Self, BuildError> {
        item.check()?;
        // Scopes are sent in a header.
        if let Some(scope) = item.settings().scopes.iter().find(|scope| !is_scope(scope)) {
            let (key, scope) = (escaped(item.key()), escaped(scope));
            return Err(BuildError(format!(
                "`{key}` needs the scope `{scope}`, which is not valid: a scope is printable ASCII without spaces, quotes and \
                 backslashes"
            )));
        }
        let key: Arc<str> = item.key().into();
        let written = raw(item.definition())?.into();
        Ok(Self { digest: digest(key.as_bytes()), key, item: Arc::new(item), written })
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the item of an entry that is in no list.
    pub(crate) fn into_item(self) -> Option<T> {
        Arc::into_inner(self.item)
    }

    /// Returns whether this caller sees the item.
    pub(crate) fn is_visible_to(&self, caller: &CallerInfo) -> bool {
        self.item.per_caller().shows(&self.key, caller)
    }

    /// Returns whether some callers do not see the item.
    pub(crate) fn is_hidden_from_some(&self) -> bool {
        self.item.per_caller().hides()
    }

    /// Returns the definition for this caller.
    fn described(&self, caller: &CallerInfo, before: T::Definition) -> T::Definition {
        let mut changed = before.clone();
        if !self.item.per_caller().describe(&self.key, caller, &mut changed) {
            return before;
        }
        T::keep(before, &mut changed);
        changed
    }
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self {
            key: Arc::clone(&self.key),
            digest: self.digest,
            item: Arc::clone(&self.item),
            written: Arc::clone(&self.written),
        }
    }
}

/// A list with its first page written.
pub(crate) struct List<T> {
    entries: Vec<Entry<T>>,
    places: HashMap<Arc<str>, usize>,
    first: Box<RawValue>,
    /// True if callers may see different lists.
    is_per_caller: bool,
}

impl<T: ListItem> List<T> {
    pub(crate) fn new(items: Vec<T>, profile: &Profile) -> Result<Self, BuildError> {
        Self::written(items.into_iter().map(Entry::new).collect::<Result<_, _>>()?, profile)
    }

    fn written(entries: Vec<Entry<T>>, profile: &Profile) -> Result<Self, BuildError> {
        let mut places = HashMap::with_capacity(entries.len());
        for (place, entry) in entries.iter().enumerate() {
            if places.insert(Arc::clone(&entry.key), place).is_some() {
                return Err(BuildError(format!("there are two {} `{}`{}", T::TWO, entry.key, T::ADVICE)));
            }
        }
        let first = raw(&Part::from(Cow::Borrowed(&entries), 0, profile, None))?;
        let differs = |entry: &Entry<T>| {
            let rules = entry.item.per_caller();
            rules.hides() || rules.describes()
        };
        Ok(Self { is_per_caller: entries.iter().any(differs), entries, places, first })
    }

    /// Returns the list with one more item at its end.
    ///
    /// # Errors
    /// If the list has an item with this key.
    pub(crate) fn with(&self, entry: Entry<T>, profile: &Profile) -> Result<Self, BuildError> {
        Self::written(self.entries.iter().cloned().chain([entry]).collect(), profile)
    }

    /// Returns the list without this item, and the item; `None` if the list does not contain it.
    pub(crate) fn without(
        &self,
        key: &str,
        profile: &Profile,
    ) -> Result<Option<(Self, Entry<T>)>, BuildError> {
        let Some(place) = self.places.get(key) else { return Ok(None) };
        let mut entries = self.entries.clone();
        let removed = entries.remove(*place);
        Ok(Some((Self::written(entries, profile)?, removed)))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        Some(&*self.entries.get(*self.places.get(key)?)?.item)
    }

    /// Returns the items in the order of registration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &*entry.item)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether the list has an item with this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// Returns whether callers may see different lists.
    pub(crate) fn is_per_caller(&self) -> bool {
        self.is_per_caller
    }

    /// Returns the page at a client's cursor; `None` if it is not a cursor of this list.
    pub(crate) fn page<'a>(&'a self, cursor: Option<&RawValue>, profile: &'a Profile) -> Option<Page<'a, T>> {
        match cursor {
            None => Some(Page::Written(&self.first)),
            Some(_) => self.part(cursor, profile).map(Page::Part),
        }
    }

    /// Returns the same page, not written yet.
    pub(crate) fn part<'a>(&'a self, cursor: Option<&RawValue>, profile: &'a Profile) -> Option<Part<'a, T>> {
        let start = start_of(&self.entries, cursor, profile)?;
        Some(Part::from(Cow::Borrowed(&self.entries), start, profile, None))
    }

    /// Returns the page at the cursor of this caller, whose list has the visible items, and these behind them.
    ///
    /// The cursor counts what the caller sees: it tells nothing of other items.
    pub(crate) fn part_for<'a>(
        &'a self,
        cursor: Option<&RawValue>,
        profile: &'a Profile,
        caller: &'a CallerInfo,
        more: Vec<Entry<T>>,
    ) -> Option<Part<'a, T>> {
        let mut entries: Vec<Entry<T>> = self.entries.iter().chain(&more).cloned().collect();
        entries.retain(|entry| entry.is_visible_to(caller));
        let start = start_of(&entries, cursor, profile)?;
        Some(Part::from(Cow::Owned(entries), start, profile, Some(caller)))
    }
}

/// Returns the position of a client's cursor, or 0; `None` if it is not a cursor of this list.
fn start_of<T: ListItem>(
    entries: &[Entry<T>],
    cursor: Option<&RawValue>,
    profile: &Profile,
) -> Option<usize> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let Some(cursor) = cursor else { return Some(0) };
    let Text(text) = serde_json::from_str(cursor.get()).ok()?;
    Some(after(entries, Cursor::read(&text, &profile.cursors_of(T::MEMBER))?))
}

/// Returns the position at which the list continues, even if the list has changed.
fn after<T>(entries: &[Entry<T>], cursor: Cursor) -> usize {
    let seen = usize::try_from(cursor.seen).unwrap_or(usize::MAX);
    let is_last = |entry: &Entry<T>| entry.digest == cursor.last;
    if seen.checked_sub(1).and_then(|last| entries.get(last)).is_some_and(is_last) {
        return seen;
    }
    match entries.iter().position(is_last) {
        // An item before it was added or removed.
        Some(place) => place + 1,
        // The item itself was removed: its successor is now at its position.
        None => seen.saturating_sub(1).min(entries.len()),
    }
}

/// The result of one list request.
pub(crate) enum Page<'a, T> {
    Written(&'a RawValue),
    Part(Part<'a, T>),
}

/// A part of a list, as the result of one list request.
pub(crate) struct Part<'a, T> {
    entries: Cow<'a, [Entry<T>]>,
    start: usize,
    end: usize,
    next: Option<String>,
    profile: &'a Profile,
    /// The caller for whom the list is, if callers may see different lists.
    caller: Option<&'a CallerInfo>,
}

impl<'a, T: ListItem> Part<'a, T> {
    fn from(
        entries: Cow<'a, [Entry<T>]>,
        start: usize,
        profile: &'a Profile,
        caller: Option<&'a CallerInfo>,
    ) -> Self {
        let end =
            profile.page_size.map_or(entries.len(), |size| entries.len().min(start.saturating_add(size)));
        let next = match entries.get(end.saturating_sub(1)) {
            Some(last) if end < entries.len() => {
                let seen = u32::try_from(end).unwrap_or(u32::MAX);
                Some(Cursor { seen, last: last.digest }.write(&profile.cursors_of(T::MEMBER)))
            }
            _ => None,
        };
        Self { entries, start, end, next, profile, caller }
    }

    fn entries(&self) -> &[Entry<T>] {
        self.entries.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the scope in which the page may be cached.
    fn cache_scope(&self) -> CacheScope {
        match self.caller {
            Some(_) => CacheScope::Private,
            None => self.profile.cache.scope,
        }
    }
}

impl<T: ListItem> Serialize for Page<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Written(page) => page.serialize(serializer),
            Self::Part(part) => part.serialize(serializer),
        }
    }
}

impl<T: ListItem> Serialize for Part<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { next, profile, .. } = self;
        let mut result = serializer.serialize_map(None)?;
        result.serialize_entry("resultType", "complete")?;
        result.serialize_entry(T::MEMBER, &Definitions(self, None))?;
        if let Some(next) = next {
            result.serialize_entry("nextCursor", next)?;
        }
        // > Servers **MUST** apply the same `cacheScope` to all response pages for a given list request.
        result.serialize_entry("ttlMs", &profile.cache.ttl)?;
        result.serialize_entry("cacheScope", &self.cache_scope())?;
        result.serialize_entry("_meta", &profile.server_info)?;
        result.end()
    }
}

/// The definitions on a page, for a session of this version if there is one.
struct Definitions<'a, T>(&'a Part<'a, T>, Option<&'a ProtocolVersion>);

impl<T: ListItem> Serialize for Definitions<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(part, version) = self;
        let mut list = serializer.serialize_seq(Some(part.entries().len()))?;
        for entry in part.entries() {
            let in_session = version.and_then(|version| entry.item.definition_for(version));
            let definition = match part.caller.filter(|_| entry.item.per_caller().describes()) {
                None => in_session,
                Some(caller) => Some(
                    entry.described(caller, in_session.unwrap_or_else(|| entry.item.definition().clone())),
                ),
            };
            match definition {
                None => list.serialize_element(&*entry.written)?,
                Some(definition) => list.serialize_element(&definition)?,
            }
        }
        list.end()
    }
}

impl<T: ListItem> SessionResult for Part<'_, T> {
    fn write_members<M: SerializeMap>(
        &self,
        version: &ProtocolVersion,
        members: &mut M,
    ) -> Result<(), M::Error> {
        members.serialize_entry(T::MEMBER, &Definitions(self, Some(version)))?;
        match &self.next {
            Some(next) => members.serialize_entry("nextCursor", next),
            None => Ok(()),
        }
    }
}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.iter().map(|entry| &entry.key)).finish()
    }
}

/// The length of a cursor in hexadecimal digits: a position, the digest of the last item's key, and a checksum.
const LENGTH: usize = 8 + 16 + 16;

/// A position in a list, after the last listed item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The number of items up to this position.
    pub(crate) seen: u32,
    /// The [`digest`] of the last item's key.
    pub(crate) last: u64,
}

impl Cursor {
    /// Returns the text for a client. `list` names the list; the cursor is not valid for another list.
    pub(crate) fn write(self, list: &str) -> String {
        let mut text = String::with_capacity(LENGTH);
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{:08x}{:016x}{:016x}", self.seen, self.last, self.check(list));
        text
    }

    /// Reads a cursor; `None` if the text is not a cursor of this list.
    pub(crate) fn read(text: &str, list: &str) -> Option<Self> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != LENGTH || !digits {
            return None;
        }
        let number = |from: usize, to: usize| u64::from_str_radix(&text[from..to], 16).ok();
        let cursor = Self { seen: u32::try_from(number(0, 8)?).ok()?, last: number(8, 24)? };
        // Zero is before the first item: no cursor has that position.
        (cursor.seen > 0 && number(24, LENGTH)? == cursor.check(list)).then_some(cursor)
    }

    /// Returns a checksum that distinguishes a cursor from other text. It is no secret: a cursor gives access to
    /// nothing that the list does not contain.
    fn check(self, list: &str) -> u64 {
        let place = [&self.seen.to_be_bytes()[..], &self.last.to_be_bytes()[..], list.as_bytes()].concat();
        digest(&place)
    }
}

/// FNV-1a: the same on every machine and in every release, unlike the hashes of the standard library.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_by_its_own_list_alone() {
        for (seen, key) in [(1, ""), (7, "name"), (u32::MAX, "a://\u{1f600}")] {
            let cursor = Cursor { seen, last: digest(key.as_bytes()) };
            let text = cursor.write("server tools");
            assert_eq!((text.len(), Cursor::read(&text, "server tools")), (LENGTH, Some(cursor)));
            for other in ["server prompts", "other tools", ""] {
                assert_eq!(Cursor::read(&text, other), None);
            }
            // A change of any digit is detected.
            for at in 0..LENGTH {
                let other = if &text[at..=at] == "0" { "1" } else { "0" };
                let bent = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                assert_eq!(Cursor::read(&bent, "server tools"), None, "{bent}");
            }
            for bent in
                [text.to_uppercase(), format!("{text}0"), text[1..].to_owned(), format!("+{}", &text[1..])]
            {
                assert_eq!(Cursor::read(&bent, "server tools"), None, "{bent}");
            }
        }
        for text in ["", "2", "ä", &"0".repeat(LENGTH), &"é".repeat(LENGTH / 2)] {
            assert_eq!(Cursor::read(text, "server tools"), None, "{text}");
        }
        let before_all = Cursor { seen: 0, last: 0 };
        assert_eq!(Cursor::read(&before_all.write("x"), "x"), None);
    }

    /// Other instances may run another release: the meaning of a cursor must not change.
    #[test]
    fn a_cursor_of_today_is_one_tomorrow() {
        let cursor = Cursor { seen: 2, last: digest(b"b") };
        assert_eq!(cursor.write("server tools"), "00000002af63df4c8601f1a57b1318d985f4bc41");
    }
}
