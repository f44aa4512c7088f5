//! The names of the members of all open objects.

/// The number of members up to which a new name is compared with all before it. The names of a larger object are sorted
/// at its end.
const COMPARED: usize = 32;

/// The hashes of the names of all open objects, innermost last.
///
/// Different hashes are different names. Equal hashes count as one name twice: if the names differ after all, the message is
/// only read more slowly. A peer who searches for collisions gains nothing else, so the hash has no key.
pub(super) struct Names {
    hashes: Vec<u64>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { hashes: Vec::with_capacity(32) }
    }

    /// Begins an object; returns its place, which the other two methods take.
    pub(super) fn open(&self) -> usize {
        self.hashes.len()
    }

    /// Adds a name to the innermost object; `None` if the object has the name already.
    pub(super) fn add(&mut self, place: usize, name: &str) -> Option<()> {
        let hash = hash(name.as_bytes());
        let before = self.hashes.get(place..)?;
        if before.len() < COMPARED && before.contains(&hash) {
            return None;
        }
        self.hashes.push(hash);
        Some(())
    }

    /// Ends the innermost object; `None` if the object has a name twice.
    pub(super) fn close(&mut self, place: usize) -> Option<()> {
        let all = self.hashes.get_mut(place..)?;
        if all.len() > COMPARED {
            all.sort_unstable();
            if all.windows(2).any(|pair| pair[0] == pair[1]) {
                return None;
            }
        }
        self.hashes.truncate(place);
        Some(())
    }
}

/// Returns the same number for the same name, and nearly always another for another.
fn hash(name: &[u8]) -> u64 {
    // Odd and without a pattern: the first digits of the golden ratio and of the square root of 2.
    const ONE: u64 = 0x9E37_79B9_7F4A_7C15;
    const TWO: u64 = 0x6A09_E667_F3BC_C909;
    let word = if let Some(last) = name.last_chunk::<8>() {
        let (words, _) = name.as_chunks::<8>();
        let all = words.iter().fold(ONE, |hash, word| mix(hash ^ u64::from_le_bytes(*word), TWO));
        all ^ u64::from_le_bytes(*last)
    } else if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
    } else {
        name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    mix(word ^ ONE, name.len() as u64 ^ TWO)
}

/// Returns both halves of the product, combined.
fn mix(one: u64, two: u64) -> u64 {
    let product = u128::from(one) * u128::from(two);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the names to one object. Returns whether each of them was new.
    fn are_new(names: &[String]) -> bool {
        let mut all = Names::new();
        let place = all.open();
        names.iter().all(|name| all.add(place, name).is_some()) && all.close(place).is_some()
    }

    #[test]
    fn a_name_is_found_twice_wherever_it_is() {
        for count in [1, 2, 31, 32, 33, 34, 1000] {
            let names: Vec<String> = (0..count).map(|number| format!("name{number}")).collect();
            assert!(are_new(&names), "{count}");
            for twice in [0, count / 2, count - 1] {
                let mut names = names.clone();
                names.push(names[twice].clone());
                assert!(!are_new(&names), "{twice} of {count}");
            }
        }
    }

    #[test]
    fn names_that_are_nearly_alike_are_different() {
        let mut names = vec![String::new()];
        for length in 1..40 {
            names.push("a".repeat(length));
            names.push("\0".repeat(length));
            for place in 0..length {
                let mut name = "a".repeat(length).into_bytes();
                name[place] = b'b';
                names.push(String::from_utf8(name).unwrap());
            }
        }
        assert!(are_new(&names));
    }

    #[test]
    fn objects_have_names_of_their_own() {
        let mut names = Names::new();
        let outer = names.open();
        names.add(outer, "a").unwrap();
        let inner = names.open();
        assert!(names.add(inner, "a").is_some());
        names.close(inner).unwrap();
        assert!(names.add(outer, "a").is_none());
    }
}
