//! What stands in `#[tool(..)]` and its like, and in `#[arg(..)]`.

use crate::form::attributes::{Given, Value};
use proc_macro2::Span;
use syn::{
    Error, Ident, LitBool, LitStr, Result, Token,
    ext::IdentExt as _,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// Settings by their names, each taken by who knows it.
#[derive(Default)]
pub(super) struct Settings(Vec<Setting>);

struct Setting {
    key: Ident,
    held: Held,
}

enum Held {
    Alone,
    Given(Given),
    /// `needs(form, url)`.
    Words(Vec<Ident>),
    /// `forget("create")`.
    Names(Vec<LitStr>),
}

/// Which may be there more than once.
const REPEATED: [&str; 4] = ["added", "rename", "forget", "keep_stale"];

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key = input.call(Ident::parse_any)?;
        let held = if input.parse::<Option<Token![=]>>()?.is_some() {
            if input.peek(Ident) && !input.peek(LitBool) {
                let word: Ident = input.parse()?;
                return Err(Error::new(
                    word.span(),
                    format!("a text stands in quotes: `{key} = \"{word}\"`"),
                ));
            }
            Held::Given(input.parse()?)
        } else if input.peek(syn::token::Paren) {
            let words;
            parenthesized!(words in input);
            if words.peek(LitStr) {
                let names = words.call(Punctuated::<LitStr, Token![,]>::parse_terminated);
                let names = names.map_err(|fault| Error::new(fault.span(), names_steps(&key)))?;
                Held::Names(names.into_iter().collect())
            } else {
                let words = words.call(Punctuated::<Ident, Token![,]>::parse_terminated)?;
                Held::Words(words.into_iter().collect())
            }
        } else {
            Held::Alone
        };
        Ok(Self { key, held })
    }
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut settings = Self::default();
        settings.add(input)?;
        Ok(settings)
    }
}

impl Settings {
    /// Adds what one attribute holds.
    pub(super) fn add(&mut self, input: ParseStream<'_>) -> Result<()> {
        for setting in input.call(Punctuated::<Setting, Token![,]>::parse_terminated)? {
            let key = setting.key.unraw().to_string();
            if !REPEATED.contains(&&*key) && self.has(&key) {
                return Err(Error::new(setting.key.span(), format!("`{}` is here twice", setting.key)));
            }
            self.0.push(setting);
        }
        Ok(())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|setting| setting.key.unraw() == key)
    }

    /// Refuses all but `known`; `place` is what they stand on ("a tool").
    pub(super) fn none_but(&self, known: &[&str], place: &str) -> Result<()> {
        let is_known = |setting: &&Setting| known.contains(&setting.key.unraw().to_string().as_str());
        let Some(unknown) = self.0.iter().find(|setting| !is_known(setting)) else { return Ok(()) };
        let key = &unknown.key;
        let known = match (meant(&key.unraw().to_string(), known), known) {
            (Some(meant), _) => format!("`{meant}` is"),
            (None, []) => "it has none".to_owned(),
            (None, known) => {
                let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
                format!("it has {}", known.join(", "))
            }
        };
        Err(Error::new(key.span(), format!("`{key}` is no attribute of {place}: {known}")))
    }

    fn take(&mut self, key: &str) -> Option<Setting> {
        let at = self.0.iter().position(|setting| setting.key.unraw() == key)?;
        Some(self.0.remove(at))
    }

    /// A value of any kind.
    pub(super) fn value(&mut self, key: &str) -> Result<Option<Given>> {
        match self.take(key) {
            None => Ok(None),
            Some(Setting { held: Held::Given(given), .. }) => Ok(Some(given)),
            Some(Setting { key: at, .. }) => {
                Err(Error::new(at.span(), format!("`{key}` has a value: `{key} = ..`")))
            }
        }
    }

    /// A text that is not empty.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<(String, Span)>> {
        match self.value(key)? {
            None => Ok(None),
            Some(Given { value: Value::Text(text), span }) if !text.trim().is_empty() => {
                Ok(Some((text, span)))
            }
            Some(Given { value: Value::Text(_), span }) => {
                Err(Error::new(span, format!("`{key}` is empty here: write something, or leave it out")))
            }
            Some(given) => Err(Error::new(given.span, format!("`{key}` is a text: `{key} = \"..\"`"))),
        }
    }

    /// A count: of characters, of items.
    pub(super) fn count(&mut self, key: &str) -> Result<Option<(u64, Span)>> {
        let Some(given) = self.value(key)? else { return Ok(None) };
        let count = match given.value {
            Value::Whole(whole) => u64::try_from(whole).ok(),
            _ => None,
        };
        let refuse = || Error::new(given.span, format!("`{key}` is a count: `{key} = 1`"));
        count.ok_or_else(refuse).map(|count| Some((count, given.span)))
    }

    /// Yes or no: alone, it is yes.
    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>> {
        let Some(setting) = self.take(key) else { return Ok(None) };
        match setting.held {
            Held::Alone => Ok(Some(true)),
            Held::Given(Given { value: Value::Bool(yes), .. }) => Ok(Some(yes)),
            Held::Given(Given { span, .. }) => {
                Err(Error::new(span, format!("`{key}` is yes or no: `{key}`, or `{key} = false`")))
            }
            Held::Words(_) | Held::Names(_) => {
                Err(Error::new(setting.key.span(), format!("`{key}` stands alone, or is `{key} = false`")))
            }
        }
    }

    /// Words in parentheses.
    pub(super) fn words(&mut self, key: &str) -> Result<Vec<Ident>> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Setting { held: Held::Words(words), .. }) if !words.is_empty() => Ok(words),
            Some(Setting { key: at, .. }) => {
                Err(Error::new(at.span(), format!("`{key}` lists what it is: `{key}(form, url)`")))
            }
        }
    }

    /// The first that is left of these, with the names of steps in its parentheses: one or more.
    pub(super) fn names(&mut self, keys: &[&str]) -> Result<Option<(Ident, Vec<LitStr>)>> {
        let Some(at) = self.0.iter().position(|setting| keys.iter().any(|key| setting.key == key)) else {
            return Ok(None);
        };
        let Setting { key, held } = self.0.remove(at);
        let Held::Names(names) = held else {
            return Err(Error::new(key.span(), names_steps(&key)));
        };
        if let Some(empty) = names.iter().find(|name| name.value().is_empty()) {
            let fault = match key == "scopes" {
                true => names_steps(&key),
                false => "the key of a step stands here: no step has an empty one".to_owned(),
            };
            return Err(Error::new(empty.span(), fault));
        }
        Ok(Some((key, names)))
    }

    /// A time such as `3d`, in seconds.
    pub(super) fn seconds(&mut self, key: &str) -> Result<Option<u64>> {
        let Some((text, span)) = self.text(key)? else { return Ok(None) };
        let seconds = duration(&text);
        let refuse = || {
            Error::new(
                span,
                format!(
                    "`{text}` is no time: a whole number from 1 and a unit, one of s, m, h, d, w, as in `{key} = \"3d\"`"
                ),
            )
        };
        seconds.ok_or_else(refuse).map(Some)
    }
}

/// What stands in the parentheses of `forget` and its like, and of `scopes`.
fn names_steps(key: &Ident) -> String {
    if key == "scopes" {
        return "`scopes` lists what a token must hold, in quotes: `scopes(\"orders:write\")`".to_owned();
    }
    let example = if key == "rename" { "\"create\", \"create_db\"" } else { "\"create\"" };
    format!("`{key}` names steps, by their keys in quotes: `{key}({example})`")
}

/// What was probably meant by a word that is not among `known`: written otherwise, or with one letter more, less or other.
fn meant<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let letters = |word: &str| word.replace(['_', '-'], "").to_lowercase();
    let word = letters(word);
    known.iter().copied().find(|known| is_near(word.as_bytes(), letters(known).as_bytes()))
}

/// Whether they are the same but for one byte.
fn is_near(a: &[u8], b: &[u8]) -> bool {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    match (a, b) {
        ([], []) => true,
        ([_, a @ ..], [_, rest @ ..]) if a == rest => true,
        ([_, a @ ..], b) if a == b => true,
        (a, [_, b @ ..]) => a == b,
        _ => false,
    }
}

fn duration(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return None,
    };
    let number = text.get(..text.len() - 1)?;
    let number: u64 = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    number.checked_mul(unit).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_nearly_known_was_meant() {
        let known = ["read_only", "version", "needs", "on_version"];
        for (word, expected) in [
            ("readonly", Some("read_only")),
            ("readOnly", Some("read_only")),
            ("need", Some("needs")),
            ("needss", Some("needs")),
            ("verzion", Some("version")),
            ("onversion", Some("on_version")),
            ("mime_type", None),
            ("ver", None),
            ("s", None),
        ] {
            assert_eq!(meant(word, &known), expected, "{word}");
        }
        assert_eq!(meant("read_only", &[]), None);
    }

    #[test]
    fn times_are_a_number_and_a_unit() {
        for (text, expected) in [
            ("1s", Some(1)),
            ("90m", Some(5400)),
            ("2h", Some(7200)),
            ("3d", Some(259_200)),
            ("1w", Some(604_800)),
            ("0d", None),
            ("", None),
            ("d", None),
            ("3", None),
            ("+3d", None),
            ("-3d", None),
            ("3 d", None),
            ("1.5h", None),
            ("3days", None),
            ("3é", None),
            ("18446744073709551615w", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }
}
