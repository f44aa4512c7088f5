//! The text of a key file, and the three edits of a rotation.
//!
//! ```text
//!  add                        promote                         retire
//!  old   seals                new   seals                     new   seals
//!  new   opens, # added ..    old   opens, # sealed until ..
//! ```
//!
//! The moments of the edits stand in comments behind the keys, so any reader of key files reads the file.

use std::fmt;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::key::{KeyError, KeyRing, SecretKey, file_lines, key_of};
use crate::utc;

const ADDED: &str = "added ";
const SEALS: &str = "seals since ";
const SEALED: &str = "sealed until ";

/// A key file that can be edited. Keys keep their lines and comments; the moments of edits are added to the comments.
///
/// Each edit takes effect on a server when it has read the file again. Begin an edit when the edit before has reached
/// every server.
///
/// ```
/// use antiphon_seal::{KeyFile, SecretKey};
/// use std::time::Duration;
///
/// let mut file = KeyFile::parse("")?;
/// file.add(SecretKey::random()?, 1_777_636_800)?; // the first key seals at once
/// file.add(SecretKey::random()?, 1_777_640_400)?; // the second key opens, and does not seal yet
/// file.promote(1_777_644_000)?;
/// assert!(file.retire(Duration::from_secs(86_400), 1_777_644_600).is_err()); // tokens of the old key still open
/// assert_eq!(file.retire(Duration::from_secs(86_400), 1_777_730_401)?, 1);
/// assert_eq!(file.ring()?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyFile(Zeroizing<Vec<String>>);

impl KeyFile {
    /// Reads the text of a key file. A text without a key is a file to which a key can be added.
    ///
    /// # Errors
    ///
    /// [`KeyError`] as [`KeyRing::parse_file`], but for a text without a key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let file = Self(Zeroizing::new(file_lines(text).map(|(_, line)| line.to_owned()).collect()));
        if !file.keys().is_empty() {
            file.ring()?;
        }
        Ok(file)
    }

    /// Returns the ring of the file.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no key, or if the last edit repeats a key.
    pub fn ring(&self) -> Result<KeyRing, KeyError> {
        KeyRing::parse_file(&self.to_text())
    }

    /// Returns the text, to be written to the file.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        // Room for all of it at once, so that no growing string leaves a copy of the keys behind.
        let length = self.0.iter().map(|line| line.len() + 1).sum();
        let mut text = Zeroizing::new(String::with_capacity(length));
        for line in self.0.iter() {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Adds a key as the last one: it opens, and does not seal yet. In a file without a key it seals at once; then the
    /// result is `true`.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] if a key that was added before is not promoted yet.
    pub fn add(&mut self, key: SecretKey, now: u64) -> Result<bool, KeyFileError> {
        let keys = self.keys();
        if let Some(&waiting) = keys.iter().skip(1).find(|&&line| self.waits(line)) {
            return Err(KeyFileError(Fault::NotPromoted { line: waiting + 1 }));
        }
        let (is_first, now) = (keys.is_empty(), utc::format(now));
        let note = if is_first { format!("{ADDED}{now}; {SEALS}{now}") } else { format!("{ADDED}{now}") };
        let text = key.to_base64url();
        let mut line = String::with_capacity(text.len() + note.len() + 3);
        line.push_str(&text);
        line.push_str(" # ");
        line.push_str(&note);
        self.0.push(line);
        Ok(is_first)
    }

    /// Moves the key that was added to the front: it seals from now on, and the key before opens only.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] if there is not exactly one key that has never sealed.
    pub fn promote(&mut self, now: u64) -> Result<(), KeyFileError> {
        let keys = self.keys();
        let others = keys.iter().skip(1).filter(|&&line| self.note(line, SEALED).is_none());
        let candidates: Vec<usize> = others.copied().collect();
        let (&[new], Some(&old)) = (&candidates[..], keys.first()) else {
            return Err(KeyFileError(Fault::NoneToPromote { candidates: candidates.len() }));
        };
        self.write_note(new, SEALS, now);
        self.write_note(old, SEALED, now);
        let line = self.0.remove(new);
        self.0.insert(old, line);
        Ok(())
    }

    /// Removes the keys that no longer seal. `longest_life` is the longest life of a token; the result is the number of
    /// removed keys.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] if a token of such a key may still open, or if there is no such key. It names the moment from
    /// which on the keys can be removed.
    pub fn retire(&mut self, longest_life: Duration, now: u64) -> Result<usize, KeyFileError> {
        let retired = self.retired()?;
        for &line in &retired {
            let Some(sealed_until) = self.note(line, SEALED) else {
                return Err(KeyFileError(Fault::NoTime { line: line + 1 }));
            };
            let from = sealed_until.saturating_add(longest_life.as_secs());
            if now <= from {
                return Err(KeyFileError(Fault::TooEarly { line: line + 1, from: from.saturating_add(1) }));
            }
        }
        self.remove(&retired);
        Ok(retired.len())
    }

    /// Removes the keys that no longer seal, although tokens of them may still open: these are refused from then on. For
    /// a key that others may know.
    ///
    /// # Errors
    ///
    /// [`KeyFileError`] if there is no such key.
    pub fn retire_at_once(&mut self) -> Result<usize, KeyFileError> {
        let retired = self.retired()?;
        self.remove(&retired);
        Ok(retired.len())
    }

    /// Returns the lines of the keys that have sealed and seal no more.
    fn retired(&self) -> Result<Vec<usize>, KeyFileError> {
        let keys = self.keys();
        let retired: Vec<usize> = keys.iter().skip(1).copied().filter(|&line| !self.waits(line)).collect();
        if retired.is_empty() { Err(KeyFileError(Fault::NoneToRetire)) } else { Ok(retired) }
    }

    fn remove(&mut self, lines: &[usize]) {
        for &line in lines.iter().rev() {
            let _wiped = Zeroizing::new(self.0.remove(line));
        }
    }

    /// Returns the indices of the lines with keys, the sealing one first.
    fn keys(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|&line| !key_of(&self.0[line]).is_empty()).collect()
    }

    /// Returns `true` if the key was added and has never sealed.
    fn waits(&self, line: usize) -> bool {
        self.note(line, ADDED).is_some() && self.note(line, SEALED).is_none()
    }

    /// Returns the moment of a note in the line's comment.
    fn note(&self, line: usize, name: &str) -> Option<u64> {
        let (_, comment) = self.0[line].split_once('#')?;
        notes(comment).find_map(|note| utc::parse(note.strip_prefix(name)?))
    }

    /// Writes a note into the line's comment, in the place of an earlier one of this name.
    fn write_note(&mut self, line: usize, name: &str, now: u64) {
        let note = format!("{name}{}", utc::format(now));
        let text = Zeroizing::new(std::mem::take(&mut self.0[line]));
        let (key, comment) = text.split_once('#').unwrap_or((&text, ""));
        let is_other = |note: &&str| !note.is_empty() && !note.strip_prefix(name).is_some_and(is_time);
        let notes: Vec<&str> = notes(comment).filter(is_other).chain([&*note]).collect();
        self.0[line] = format!("{} # {}", key.trim_end(), notes.join("; "));
    }
}

fn notes(comment: &str) -> impl Iterator<Item = &str> {
    comment.split(';').map(str::trim)
}

fn is_time(text: &str) -> bool {
    utc::parse(text).is_some()
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile").field("keys", &self.keys().len()).finish_non_exhaustive()
    }
}

/// An error from an edit of a key file: the edit does not fit the present phase. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFileError(Fault);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    NotPromoted { line: usize },
    NoneToPromote { candidates: usize },
    NoneToRetire,
    NoTime { line: usize },
    TooEarly { line: usize, from: u64 },
}

impl KeyFileError {
    /// Returns `true` if only tokens of the keys, which may still open, prevent the edit: see
    /// [`KeyFile::retire_at_once`].
    #[must_use]
    pub fn is_early(&self) -> bool {
        matches!(self.0, Fault::NoTime { .. } | Fault::TooEarly { .. })
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::NotPromoted { line } => {
                write!(f, "line {line}: this key was added and does not seal yet; promote it first")
            }
            Fault::NoneToPromote { candidates: 0 } => {
                f.write_str("no key was added that could seal; add one first")
            }
            Fault::NoneToPromote { candidates } => {
                write!(f, "{candidates} keys could seal next; leave one of them behind the first key")
            }
            Fault::NoneToRetire => f.write_str("no key has stopped sealing; add a key and promote it first"),
            Fault::NoTime { line } => write!(
                f,
                "line {line}: no comment says when this key stopped sealing, so tokens of it may still open"
            ),
            Fault::TooEarly { line, from } => {
                write!(
                    f,
                    "line {line}: tokens of this key may still open; remove it from {} on",
                    utc::format(*from)
                )
            }
        }
    }
}

impl std::error::Error for KeyFileError {}
