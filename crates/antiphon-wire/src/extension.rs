//! The names of extensions and of their methods.

use crate::{foreign_text::escaped, method};
use std::{error::Error as StdError, fmt, sync::Arc};

/// The maximum length of an id or a method, in bytes. Each is sent in headers, and stands in errors and logs.
const LONGEST: usize = 128;

/// The id of an extension, such as `com.example/search`. Cheap to clone.
///
/// > Extension identifiers **MUST** follow the `_meta` key naming rules, with a mandatory prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExtensionId(Arc<str>);

impl ExtensionId {
    /// Returns the id, of at most 128 bytes.
    ///
    /// > Labels MUST start with a letter and end with a letter or digit; interior characters can be letters, digits, or hyphens (`-`).
    /// > [...] **Name:** Unless empty, MUST begin and end with an alphanumeric character (`[a-z0-9A-Z]`). MAY contain hyphens (`-`),
    /// > underscores (`_`), dots (`.`), and alphanumerics in between.
    ///
    /// # Errors
    /// If the text is no such id.
    pub fn new(text: &str) -> Result<Self, InvalidExtension> {
        let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let is_word = |text: &str, inside: &[u8]| {
            let bytes = text.as_bytes();
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || inside.contains(byte);
            ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(is_plain)
        };
        let is_label =
            |label: &str| label.starts_with(|c: char| c.is_ascii_alphabetic()) && is_word(label, b"-");
        let (prefix, name) = text.split_once('/').unwrap_or_default();
        if text.len() <= LONGEST && prefix.split('.').all(is_label) && is_word(name, b"-_.") {
            return Ok(Self(text.into()));
        }
        Err(InvalidExtension::new(format!(
            "the extension id {:?} is no reversed domain and name, such as `com.example/search`, of at most {LONGEST} bytes",
            escaped(text)
        )))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExtensionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks the name of a request or notification of an extension: a prefix, a slash and a name, of at most 128 visible ASCII characters.
///
/// # Errors
/// If the name is none, or belongs to the core protocol.
pub fn check_method(name: &str) -> Result<(), InvalidExtension> {
    if method::CORE.contains(&name) {
        return Err(InvalidExtension::new(format!("the method {name:?} belongs to the core protocol")));
    }
    let is_plain = name.len() <= LONGEST && name.bytes().all(|byte| byte.is_ascii_graphic());
    match name.split_once('/') {
        Some((prefix, rest)) if is_plain && !prefix.is_empty() && !rest.is_empty() => Ok(()),
        _ => Err(InvalidExtension::new(format!(
            "the method {:?} is no prefix and name, such as `com.example/search.query`, of at most {LONGEST} visible ASCII characters",
            escaped(name)
        ))),
    }
}

/// An error of an extension that cannot be declared. The text names it, and says what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidExtension(String);

impl InvalidExtension {
    /// Returns an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for InvalidExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for InvalidExtension {}
