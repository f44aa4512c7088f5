//! What an entry is known by: the scopes it stands in, and its key.

use std::sync::Arc;

/// Between scopes, and between a scope and a key.
const SCOPE_END: char = '/';
/// Before a number from the program.
pub(crate) const NUMBER: char = '#';

/// Keys are public: they stand on the wire and in logs.
///
/// # Errors
/// What a key must look like.
pub fn check_key(key: &str) -> Result<(), String> {
    let fits = (1..=64).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_graphic() && byte != SCOPE_END as u8 && byte != NUMBER as u8);
    if fits {
        Ok(())
    } else {
        Err(format!("the key {key:?} is not 1 to 64 visible ASCII characters without `#` and `/`"))
    }
}

/// The path of a key in its scopes: `alice/charge#2`.
///
/// # Errors
/// If the key is none.
pub fn path(scope: &str, key: &str, number: Option<i128>) -> Result<Arc<str>, String> {
    check_key(key)?;
    Ok(match number {
        None if scope.is_empty() => key.into(),
        None => format!("{scope}{key}").into(),
        Some(number) => format!("{scope}{key}{NUMBER}{number}").into(),
    })
}

/// The prefix of all keys below a scope.
///
/// # Errors
/// If the name is none.
pub fn scope_prefix(scope: &str, name: &str) -> Result<String, String> {
    check_key(name)?;
    Ok(format!("{scope}{name}{SCOPE_END}"))
}

/// A path as its scope and its key: what an idempotency key is made of.
pub fn split_scope(path: &str) -> (&str, &str) {
    path.rsplit_once(SCOPE_END).unwrap_or(("", path))
}

/// The key of a step: text, or text with a number from the program, such as a loop counter or a row's id.
///
/// ```
/// use antiphon_engine::StepKey;
///
/// let (one, many): (StepKey<'_>, StepKey<'_>) = ("charge".into(), ("charge", 2).into());
/// assert_eq!((one.to_string(), many.to_string()), ("charge".into(), "charge#2".into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepKey<'k> {
    /// The text.
    pub key: &'k str,
    /// The number, if there is one.
    pub number: Option<i128>,
}

impl<'k> From<&'k str> for StepKey<'k> {
    fn from(key: &'k str) -> Self {
        Self { key, number: None }
    }
}

impl<'k> From<&'k String> for StepKey<'k> {
    fn from(key: &'k String) -> Self {
        Self { key, number: None }
    }
}

impl<'k, N: IntoNumber> From<(&'k str, N)> for StepKey<'k> {
    fn from((key, number): (&'k str, N)) -> Self {
        Self { key, number: Some(number.into_number()) }
    }
}

/// A number from the program, which tells several uses of one key apart: a loop counter, the id of a row. Every integer
/// of up to 64 bits is one, and equal numbers of different types are the same: `charge#7`, `charge#-7`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no number of a key",
    label = "no integer of up to 64 bits",
    note = "a text that tells several apart is the name of a scope: `ctx.scope(name)`"
)]
pub trait IntoNumber: sealed::Sealed {
    #[doc(hidden)]
    fn into_number(self) -> i128;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($integer:ty),*) => { $(
        impl sealed::Sealed for $integer {}
        impl IntoNumber for $integer {
            fn into_number(self) -> i128 {
                // None is wider than 64 bits.
                self as i128
            }
        }
    )* };
}

numbers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl std::fmt::Display for StepKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            Some(number) => write!(f, "{}{NUMBER}{number}", self.key),
            None => f.write_str(self.key),
        }
    }
}
