//! The proofs that were accepted, for as long as they could be sent again.

use ring::digest::{SHA256, digest};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The maximum number of proofs that are remembered of one key, and of all keys in one part.
const MAX_OF_KEY: usize = 16 * 1024;
const MAX_OF_PART: usize = 32 * 1024;

/// The number of parts, each with a lock of its own.
const PARTS: usize = 16;

/// The part of a hash that names a proof.
type Name = [u8; 16];

/// The error for a proof that cannot be remembered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The names of accepted proofs.
pub(crate) struct Replays {
    /// The time in seconds for which a proof is remembered.
    kept: u64,
    /// Nobody can choose a key for a part.
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
}

#[derive(Default)]
struct Part {
    keys: HashMap<Box<str>, Proofs>,
    count: usize,
}

/// The proofs of one key.
#[derive(Default)]
struct Proofs {
    names: HashSet<Name>,
    /// The names with their times, the oldest first.
    order: VecDeque<(u64, Name)>,
}

impl Replays {
    /// Returns a memory of proofs that could be accepted for so long.
    pub(crate) fn new(kept: Duration) -> Self {
        Self { kept: kept.as_secs(), hasher: RandomState::new(), parts: Default::default() }
    }

    /// Adds the proof `id` of this key. Returns `false` if it is there already, and an error if there is no room for this key, or in
    /// its part.
    pub(crate) fn add(&self, key: &str, id: &str, now: u64) -> Result<bool, Full> {
        let mut name = Name::default();
        name.copy_from_slice(&digest(&SHA256, id.as_bytes()).as_ref()[..16]);
        let mut part = self.part(key).lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = now.saturating_sub(self.kept);
        if part.count >= MAX_OF_PART {
            part.keys.retain(|_, proofs| {
                proofs.forget(oldest);
                !proofs.names.is_empty()
            });
            part.count = part.keys.values().map(|proofs| proofs.names.len()).sum();
        }
        let is_full = part.count >= MAX_OF_PART;
        let Part { keys, count } = &mut *part;
        let proofs = match keys.get_mut(key) {
            Some(proofs) => proofs,
            None if is_full => return Err(Full),
            None => keys.entry(key.into()).or_default(),
        };
        *count -= proofs.forget(oldest);
        if proofs.names.contains(&name) {
            return Ok(false);
        }
        if is_full || proofs.names.len() >= MAX_OF_KEY {
            return Err(Full);
        }
        proofs.names.insert(name);
        proofs.order.push_back((now, name));
        *count += 1;
        Ok(true)
    }

    fn part(&self, key: &str) -> &Mutex<Part> {
        &self.parts[self.hasher.hash_one(key) as usize % PARTS]
    }
}

impl Proofs {
    /// Removes what was added before this time, and returns its number.
    fn forget(&mut self, oldest: u64) -> usize {
        let mut removed = 0;
        while let Some((_, name)) = self.order.front().filter(|(at, _)| *at < oldest) {
            self.names.remove(name);
            self.order.pop_front();
            removed += 1;
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_there_once_for_its_time() {
        let replays = Replays::new(Duration::from_secs(10));
        for (key, id, now, expected) in [
            ("k", "1", 100, Ok(true)),
            ("k", "1", 100, Ok(false)),
            ("k", "1", 110, Ok(false)),
            ("other", "1", 110, Ok(true)),
            ("k", "2", 110, Ok(true)),
            // It can be accepted no more.
            ("k", "1", 111, Ok(true)),
            ("k", "2", 111, Ok(false)),
        ] {
            assert_eq!(replays.add(key, id, now), expected, "{key} {id} {now}");
        }
    }

    #[test]
    fn a_key_takes_the_room_of_no_other() {
        let replays = Replays::new(Duration::from_secs(10));
        for number in 0..MAX_OF_KEY {
            assert_eq!(replays.add("greedy", &number.to_string(), 100), Ok(true));
        }
        assert_eq!(replays.add("greedy", "one more", 100), Err(Full));
        assert_eq!(replays.add("greedy", "1", 100), Ok(false));
        assert_eq!(replays.add("modest", "1", 100), Ok(true));
        assert_eq!(replays.add("greedy", "one more", 111), Ok(true));
    }

    #[test]
    fn many_keys_take_bounded_room() {
        let replays = Replays::new(Duration::from_secs(10));
        let add = |from: usize, now: u64| {
            (from..from + PARTS * MAX_OF_PART + PARTS)
                .filter(|key| replays.add(&key.to_string(), "1", now) == Ok(true))
                .count()
        };
        assert!(add(0, 100) <= PARTS * MAX_OF_PART);
        // Keys without a proof are forgotten.
        let first = replays.parts.iter().map(|part| part.lock().unwrap().keys.len()).max();
        assert_eq!(first, Some(MAX_OF_PART));
        assert_eq!(replays.add("later", "1", 111), Ok(true));
    }
}
