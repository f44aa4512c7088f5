//! Keys, and the paths of entries: the scopes and the key.

use std::sync::Arc;

/// The separator between scopes, and between a scope and a key.
const SCOPE_END: char = '/';
/// The character before a number from the program.
pub(crate) const NUMBER: char = '#';

/// Checks that a text is a valid key. Keys are public: they appear on the wire and in logs.
///
/// # Errors
/// The rule for keys, if the text breaks it.
pub fn check_key(key: &str) -> Result<(), String> {
    let fits = (1..=64).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_graphic() && byte != SCOPE_END as u8 && byte != NUMBER as u8);
    if fits {
        Ok(())
    } else {
        Err(format!("the key {key:?} is not 1 to 64 visible ASCII characters without `#` and `/`"))
    }
}

/// Returns the path of a key in its scopes, such as `alice/charge#2`.
///
/// # Errors
/// If the key is not valid.
pub fn path(scope: &str, key: &str, number: Option<i128>) -> Result<Arc<str>, String> {
    check_key(key)?;
    Ok(match number {
        None if scope.is_empty() => key.into(),
        None => format!("{scope}{key}").into(),
        Some(number) => format!("{scope}{key}{NUMBER}{number}").into(),
    })
}

/// Returns the prefix of all keys in a scope.
///
/// # Errors
/// If the name is not a valid key.
pub fn scope_prefix(scope: &str, name: &str) -> Result<String, String> {
    check_key(name)?;
    Ok(format!("{scope}{name}{SCOPE_END}"))
}

/// Splits a path into its scope and its key. An idempotency key is derived from both.
pub fn split_scope(path: &str) -> (&str, &str) {
    path.rsplit_once(SCOPE_END).unwrap_or(("", path))
}

/// The key of a step: a text, or a text and a number from the program, such as a loop counter or a row's id.
///
/// ```
/// use antiphon_engine::StepKey;
///
/// let (one, many): (StepKey<'_>, StepKey<'_>) = ("charge".into(), ("charge", 2).into());
/// assert_eq!((one.to_string(), many.to_string()), ("charge".into(), "charge#2".into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepKey<'k> {
    /// The text of the key.
    pub key: &'k str,
    /// The number, if the key has one.
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

/// A number from the program, which distinguishes several uses of one key: a loop counter or the id of a row. Every
/// integer type of up to 64 bits implements the trait. Equal numbers of different types give the same key: `charge#7`,
/// `charge#-7`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the number of a key",
    label = "not an integer of up to 64 bits",
    note = "use a scope to distinguish several uses by a text: `ctx.scope(name)`"
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
                // Every type of the macro has at most 64 bits.
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
