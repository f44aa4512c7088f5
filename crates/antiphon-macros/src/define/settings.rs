//! The settings in `#[tool(..)]`, `#[prompt(..)]`, `#[resource(..)]` and `#[arg(..)]`.

use crate::form::attributes::{Given, Value};
use proc_macro2::Span;
use syn::{
    Error, Expr, Ident, LitBool, LitStr, Result, Token, Type,
    ext::IdentExt as _,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// Settings by name. A reader removes each setting that it supports.
#[derive(Default)]
pub(super) struct Settings(Vec<Setting>);

struct Setting {
    key: Ident,
    value: SettingValue,
}

enum SettingValue {
    Alone,
    Given(Given),
    /// Words in parentheses, such as `needs(form, url)`.
    Words(Vec<Ident>),
    /// Texts in parentheses, such as `forget("create")`.
    Names(Vec<LitStr>),
    /// An expression, such as `meta = json!({..})`.
    Expression(Expr),
    /// A type, such as `returns = Found`.
    Type(Type),
}

/// The settings whose value is an expression.
const EXPRESSIONS: [&str; 4] = ["icon", "meta", "cache", "complete"];

/// The settings whose value is a function, each with an example.
pub(super) const FUNCTIONS: [(&str, &str); 3] =
    [("approved_by", "is_manager"), ("visible_if", "is_admin"), ("listed_as", "translated")];

/// The settings with words in parentheses, each with an example.
const WORDS: [(&str, &str); 3] =
    [("needs", "form, url"), ("audience", "user, assistant"), ("ui_visibility", "model, app")];

/// The settings that may be repeated.
const REPEATED: [&str; 5] = ["added", "rename", "forget", "keep_stale", "icon"];

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key = input.call(Ident::parse_any)?;
        let word = key.unraw().to_string();
        let value = if input.parse::<Option<Token![=]>>()?.is_some() {
            if EXPRESSIONS.contains(&&*word) {
                return Ok(Self { key, value: SettingValue::Expression(input.parse()?) });
            }
            if word == "returns" {
                return Ok(Self { key, value: SettingValue::Type(input.parse()?) });
            }
            if input.peek(Ident) && !input.peek(LitBool) {
                let word: Ident = input.parse()?;
                return Err(Error::new(
                    word.span(),
                    format!("a text must be in quotes: `{key} = \"{word}\"`"),
                ));
            }
            SettingValue::Given(input.parse()?)
        } else if input.peek(syn::token::Paren) {
            let words;
            parenthesized!(words in input);
            if words.peek(LitStr) {
                let names = words.call(Punctuated::<LitStr, Token![,]>::parse_terminated);
                let names = names.map_err(|fault| Error::new(fault.span(), names_steps(&key)))?;
                SettingValue::Names(names.into_iter().collect())
            } else {
                let words = words.call(Punctuated::<Ident, Token![,]>::parse_terminated)?;
                SettingValue::Words(words.into_iter().collect())
            }
        } else {
            SettingValue::Alone
        };
        Ok(Self { key, value })
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
    /// Adds the settings of one attribute.
    pub(super) fn add(&mut self, input: ParseStream<'_>) -> Result<()> {
        for setting in input.call(Punctuated::<Setting, Token![,]>::parse_terminated)? {
            let key = setting.key.unraw().to_string();
            if !REPEATED.contains(&&*key) && self.has(&key) {
                return Err(Error::new(setting.key.span(), format!("`{}` is set twice", setting.key)));
            }
            self.0.push(setting);
        }
        Ok(())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|setting| setting.key.unraw() == key)
    }

    /// Rejects settings that are not in `known`. `place` is the item with its article, such as "a tool".
    pub(super) fn reject_unknown(&self, known: &[&str], place: &str) -> Result<()> {
        let is_known = |setting: &&Setting| known.contains(&setting.key.unraw().to_string().as_str());
        let Some(unknown) = self.0.iter().find(|setting| !is_known(setting)) else { return Ok(()) };
        let key = &unknown.key;
        let known = match (suggestion(&key.unraw().to_string(), known), known) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, []) => "no attribute is allowed".to_owned(),
            (None, known) => {
                let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
                format!("use {}", known.join(", "))
            }
        };
        Err(Error::new(key.span(), format!("`{key}` is not an attribute of {place}: {known}")))
    }

    fn take(&mut self, key: &str) -> Option<Setting> {
        let at = self.0.iter().position(|setting| setting.key.unraw() == key)?;
        Some(self.0.remove(at))
    }

    /// Removes a setting with a value of any type.
    pub(super) fn value(&mut self, key: &str) -> Result<Option<Given>> {
        match self.take(key) {
            None => Ok(None),
            Some(Setting { value: SettingValue::Given(given), .. }) => Ok(Some(given)),
            Some(Setting { key: at, .. }) => {
                Err(Error::new(at.span(), format!("`{key}` needs a value: `{key} = ..`")))
            }
        }
    }

    /// Removes a setting with a text that is not empty.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<(String, Span)>> {
        match self.value(key)? {
            None => Ok(None),
            Some(Given { value: Value::Text(text), span }) if !text.trim().is_empty() => {
                Ok(Some((text, span)))
            }
            Some(Given { value: Value::Text(_), span }) => {
                Err(Error::new(span, format!("`{key}` is empty: write a text, or remove it")))
            }
            Some(given) => Err(Error::new(given.span, format!("`{key}` must be a text: `{key} = \"..\"`"))),
        }
    }

    /// Removes a setting with a number of characters or items.
    pub(super) fn count(&mut self, key: &str) -> Result<Option<(u64, Span)>> {
        let Some(given) = self.value(key)? else { return Ok(None) };
        let count = match given.value {
            Value::Whole(whole) => u64::try_from(whole).ok(),
            _ => None,
        };
        let refuse = || Error::new(given.span, format!("`{key}` must be a whole number: `{key} = 1`"));
        count.ok_or_else(refuse).map(|count| Some((count, given.span)))
    }

    /// Removes a setting that is true or false. A setting without a value is true.
    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>> {
        let Some(setting) = self.take(key) else { return Ok(None) };
        match setting.value {
            SettingValue::Alone => Ok(Some(true)),
            SettingValue::Given(Given { value: Value::Bool(yes), .. }) => Ok(Some(yes)),
            SettingValue::Given(Given { span, .. }) => {
                Err(Error::new(span, format!("`{key}` must be true or false: `{key}`, or `{key} = false`")))
            }
            _ => Err(Error::new(
                setting.key.span(),
                format!("`{key}` takes no list: write `{key}`, or `{key} = false`"),
            )),
        }
    }

    /// Removes a setting with words in parentheses.
    pub(super) fn words(&mut self, key: &str) -> Result<Vec<Ident>> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Setting { value: SettingValue::Words(words), .. }) if !words.is_empty() => Ok(words),
            Some(Setting { key: at, .. }) => {
                let known = FUNCTIONS.iter().chain(&WORDS).find(|(name, _)| *name == key);
                let example = known.map_or("..", |(_, example)| example);
                Err(Error::new(at.span(), format!("`{key}` needs a list: `{key}({example})`")))
            }
        }
    }

    /// Removes a setting with an expression.
    pub(super) fn expression(&mut self, key: &str, example: &str) -> Result<Option<Expr>> {
        match self.take(key) {
            None => Ok(None),
            Some(Setting { value: SettingValue::Expression(value), .. }) => Ok(Some(value)),
            Some(Setting { key: at, .. }) => {
                Err(Error::new(at.span(), format!("`{key}` needs a value: `{key} = {example}`")))
            }
        }
    }

    /// Removes a setting with a type.
    pub(super) fn type_of(&mut self, key: &str, example: &str) -> Result<Option<Type>> {
        match self.take(key) {
            None => Ok(None),
            Some(Setting { value: SettingValue::Type(value), .. }) => Ok(Some(value)),
            Some(Setting { key: at, .. }) => {
                Err(Error::new(at.span(), format!("`{key}` needs a type: `{key} = {example}`")))
            }
        }
    }

    /// Removes the first of these settings. Returns its name and its texts, at least one.
    pub(super) fn names(&mut self, keys: &[&str]) -> Result<Option<(Ident, Vec<LitStr>)>> {
        let Some(at) = self.0.iter().position(|setting| keys.iter().any(|key| setting.key == key)) else {
            return Ok(None);
        };
        let Setting { key, value } = self.0.remove(at);
        let SettingValue::Names(names) = value else {
            return Err(Error::new(key.span(), names_steps(&key)));
        };
        if let Some(empty) = names.iter().find(|name| name.value().is_empty()) {
            let fault = match key == "scopes" {
                true => names_steps(&key),
                false => "the key of a step cannot be empty".to_owned(),
            };
            return Err(Error::new(empty.span(), fault));
        }
        Ok(Some((key, names)))
    }

    /// Removes a setting with a duration, such as `3d`. Returns seconds.
    pub(super) fn seconds(&mut self, key: &str) -> Result<Option<u64>> {
        let Some((text, span)) = self.text(key)? else { return Ok(None) };
        let seconds = duration(&text);
        let refuse = || {
            Error::new(
                span,
                format!(
                    "`{text}` is not a duration: write a whole number from 1 and one of the units s, m, h, d, w, as in `{key} = \"3d\"`"
                ),
            )
        };
        seconds.ok_or_else(refuse).map(Some)
    }
}

/// Returns the message for a setting that must have texts in parentheses.
fn names_steps(key: &Ident) -> String {
    if key == "scopes" {
        return "`scopes` needs a list of texts: `scopes(\"orders:write\")`".to_owned();
    }
    let example = if key == "rename" { "\"create\", \"create_db\"" } else { "\"create\"" };
    format!("`{key}` needs the keys of steps, in quotes: `{key}({example})`")
}

/// Returns the known word that is spelled almost the same: with other separators or case, or with one letter more, less
/// or different.
fn suggestion<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let letters = |word: &str| word.replace(['_', '-'], "").to_lowercase();
    let word = letters(word);
    known.iter().copied().find(|known| differs_by_one_letter(word.as_bytes(), letters(known).as_bytes()))
}

/// Returns `true` if the words differ in at most one byte.
fn differs_by_one_letter(a: &[u8], b: &[u8]) -> bool {
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
    fn similar_words_are_suggested() {
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
            assert_eq!(suggestion(word, &known), expected, "{word}");
        }
        assert_eq!(suggestion("read_only", &[]), None);
    }

    #[test]
    fn durations_are_a_number_and_a_unit() {
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
