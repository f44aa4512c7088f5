//! The attributes in `#[form(..)]`, doc comments, the names that serde reads, and the attributes of serde that a form does not
//! support.

use crate::errors::plain;
use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Error, Expr, ExprLit, Ident, Lit, LitStr, Meta, Path, Result, Token, bracketed,
    ext::IdentExt as _,
    meta::ParseNestedMeta,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    spanned::Spanned as _,
};

/// The attributes of one field, variant or type.
pub(super) struct Attributes(Vec<Entry>);

struct Entry {
    key: Ident,
    value: Option<Given>,
}

/// A value and its span.
pub(crate) struct Given {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

pub(crate) enum Value {
    Text(String),
    Whole(i128),
    Float(f64),
    Bool(bool),
    List(Vec<LitStr>),
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key = input.call(Ident::parse_any)?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Self { key, value })
    }
}

impl Parse for Given {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let span = input.span();
        if input.peek(syn::token::Bracket) {
            let list;
            bracketed!(list in input);
            let values = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
            return Ok(Self { value: Value::List(values.into_iter().collect()), span });
        }
        let negative = input.parse::<Option<Token![-]>>()?.is_some();
        let refuse = || Error::new(span, "expected a text, a number, true, false, or a list of texts");
        let literal: Lit = input.parse().map_err(|_| refuse())?;
        let value = match &literal {
            Lit::Int(number) => {
                let whole: i128 = number.base10_parse()?;
                Value::Whole(if negative { -whole } else { whole })
            }
            Lit::Float(number) => {
                let float: f64 = number.base10_parse()?;
                Value::Float(if negative { -float } else { float })
            }
            Lit::Str(text) if !negative => Value::Text(text.value()),
            Lit::Bool(yes) if !negative => Value::Bool(yes.value),
            _ => return Err(refuse()),
        };
        Ok(Self { value, span: literal.span() })
    }
}

impl Attributes {
    pub(super) fn read(attrs: &[Attribute]) -> Result<Self> {
        let mut entries: Vec<Entry> = Vec::new();
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("form")) {
            for entry in attr.parse_args_with(Punctuated::<Entry, Token![,]>::parse_terminated)? {
                if entries.iter().any(|earlier| earlier.key == entry.key) {
                    return Err(Error::new(entry.key.span(), format!("`{}` is set twice", entry.key)));
                }
                entries.push(entry);
            }
        }
        Ok(Self(entries))
    }

    fn take(&mut self, key: &str) -> Option<Entry> {
        let at = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(at))
    }

    /// Returns `true` if the attribute is present.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|entry| entry.key == key)
    }

    /// Removes an attribute with a value of any type.
    pub(super) fn value(&mut self, key: &str) -> Result<Option<Given>> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let missing = || Error::new(entry.key.span(), format!("`{key}` needs a value: `{key} = ..`"));
        entry.value.ok_or_else(missing).map(Some)
    }

    /// Removes an attribute with a text.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<(String, Span)>> {
        match self.value(key)? {
            None => Ok(None),
            Some(Given { value: Value::Text(text), span }) => Ok(Some((text, span))),
            Some(given) => Err(Error::new(given.span, format!("`{key}` must be a text: `{key} = \"..\"`"))),
        }
    }

    /// Removes an attribute with a number of characters or items.
    pub(super) fn count(&mut self, key: &str) -> Result<Option<(u64, Span)>> {
        let Some(given) = self.value(key)? else { return Ok(None) };
        let count = match given.value {
            Value::Whole(whole) => u64::try_from(whole).ok(),
            _ => None,
        };
        let refuse = || Error::new(given.span, format!("`{key}` must be a whole number: `{key} = 1`"));
        count.ok_or_else(refuse).map(|count| Some((count, given.span)))
    }

    /// Removes an attribute without a value.
    pub(super) fn flag(&mut self, key: &str) -> Result<bool> {
        match self.take(key) {
            None => Ok(false),
            Some(Entry { value: None, .. }) => Ok(true),
            Some(Entry { value: Some(given), .. }) => {
                Err(Error::new(given.span, format!("`{key}` takes no value")))
            }
        }
    }

    /// Rejects attributes that are not in `known`. `place` is the item with its article, such as "a text".
    pub(super) fn reject_unknown(&self, known: &[&str], place: &str) -> Result<()> {
        let Some(entry) =
            self.0.iter().find(|entry| !known.contains(&entry.key.unraw().to_string().as_str()))
        else {
            return Ok(());
        };
        let key = &entry.key;
        let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
        let known = match known.as_slice() {
            [] => "no attribute is allowed".to_owned(),
            known => format!("use {}", known.join(", ")),
        };
        Err(Error::new(key.span(), format!("`{key}` is not an attribute of {place}: {known}")))
    }
}

/// Returns the text of a doc comment. The lines of a paragraph become one line.
pub(crate) fn doc_comment(attrs: &[Attribute]) -> Option<String> {
    let mut paragraphs = vec![String::new()];
    for line in attrs
        .iter()
        .filter_map(doc_lines)
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
    {
        match (line.trim(), paragraphs.last_mut()) {
            ("", _) => paragraphs.push(String::new()),
            (line, Some(paragraph)) if paragraph.is_empty() => line.clone_into(paragraph),
            (line, Some(paragraph)) => {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
            (_, None) => {}
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}

fn doc_lines(attr: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attr.meta else { return None };
    match &meta.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if meta.path.is_ident("doc") => {
            // An empty line of a comment is an empty attribute. It ends a paragraph.
            Some(if text.value().trim().is_empty() { "\n".to_owned() } else { text.value() })
        }
        _ => None,
    }
}

/// serde's attributes of a type, for all its fields or variants.
#[derive(Default)]
pub(super) struct TypeAttributes {
    casing: Option<Casing>,
    /// True if every field has a default.
    pub(super) defaults: bool,
}

/// serde's attributes of a field or a variant.
#[derive(Default)]
pub(super) struct FieldAttributes {
    rename: Option<String>,
    /// True if the field has a default.
    pub(super) default: bool,
    /// True if serde never reads the field or variant.
    pub(super) skipped: bool,
}

impl TypeAttributes {
    pub(super) fn of_type(attrs: &[Attribute]) -> Result<Self> {
        let mut names = Self::default();
        read(attrs, |meta, key| {
            match key {
                "rename_all" => {
                    let given = deserialized(meta)?.map(|name| casing(&name)).transpose()?;
                    names.casing = given.or(names.casing);
                }
                "default" => {
                    names.defaults = true;
                    skip_value(meta)?;
                }
                "tag" | "content" | "untagged" | "from" | "try_from" | "remote" | "transparent"
                | "field_identifier" | "variant_identifier" => return Err(unsupported(&meta.path, key)),
                _ => skip_value(meta)?,
            }
            Ok(())
        })?;
        Ok(names)
    }

    pub(super) fn field(&self, own: &FieldAttributes, ident: &Ident) -> String {
        self.name(own, ident, Casing::field)
    }

    pub(super) fn variant(&self, own: &FieldAttributes, ident: &Ident) -> String {
        self.name(own, ident, Casing::variant)
    }

    fn name(&self, own: &FieldAttributes, ident: &Ident, cased: fn(Casing, &str) -> String) -> String {
        let plain = plain(ident);
        own.rename
            .clone()
            .unwrap_or_else(|| self.casing.map_or_else(|| plain.clone(), |casing| cased(casing, &plain)))
    }
}

impl FieldAttributes {
    pub(super) fn read(attrs: &[Attribute]) -> Result<Self> {
        let mut own = Self::default();
        read(attrs, |meta, key| {
            match key {
                "rename" => own.rename = deserialized(meta)?.map(|name| name.value()).or(own.rename.take()),
                "default" => {
                    own.default = true;
                    skip_value(meta)?;
                }
                "skip" | "skip_deserializing" => own.skipped = true,
                "flatten" | "with" | "deserialize_with" | "other" | "untagged" => {
                    return Err(unsupported(&meta.path, key));
                }
                _ => skip_value(meta)?,
            }
            Ok(())
        })?;
        Ok(own)
    }
}

fn unsupported(path: &Path, key: &str) -> Error {
    let message =
        format!("a derived form does not support serde's `{key}`: remove it, or implement the trait by hand");
    Error::new(path.span(), message)
}

fn read(attrs: &[Attribute], mut each: impl FnMut(&ParseNestedMeta<'_>, &str) -> Result<()>) -> Result<()> {
    attrs.iter().filter(|attr| attr.path().is_ident("serde")).try_for_each(|attr| {
        attr.parse_nested_meta(|meta| {
            let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            each(&meta, &key)
        })
    })
}

/// Reads `key = ".."`, or the `deserialize` name of `key(serialize = "..", deserialize = "..")`.
fn deserialized(meta: &ParseNestedMeta<'_>) -> Result<Option<LitStr>> {
    if meta.input.peek(Token![=]) {
        return meta.value()?.parse().map(Some);
    }
    let mut name = None;
    meta.parse_nested_meta(|side| {
        let value: LitStr = side.value()?.parse()?;
        if side.path.is_ident("deserialize") {
            name = Some(value);
        }
        Ok(())
    })?;
    Ok(name)
}

fn casing(name: &LitStr) -> Result<Casing> {
    let known = Casing::ALL.iter().find(|(known, _)| *known == name.value());
    let refuse = || Error::new(name.span(), "serde has no `rename_all` of this name");
    known.map(|(_, casing)| *casing).ok_or_else(refuse)
}

/// Skips a value that the form does not need. serde checks the value.
fn skip_value(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Lit>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let group;
        syn::parenthesized!(group in meta.input);
        group.parse::<TokenStream>()?;
    }
    Ok(())
}

/// A casing of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Casing {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Casing {
    /// The casings by the names that serde gives them.
    pub(super) const ALL: [(&'static str, Self); 8] = [
        ("lowercase", Self::Lower),
        ("UPPERCASE", Self::Upper),
        ("PascalCase", Self::Pascal),
        ("camelCase", Self::Camel),
        ("snake_case", Self::Snake),
        ("SCREAMING_SNAKE_CASE", Self::ScreamingSnake),
        ("kebab-case", Self::Kebab),
        ("SCREAMING-KEBAB-CASE", Self::ScreamingKebab),
    ];

    /// Returns the name of a field, which is written in snake case.
    pub(super) fn field(self, name: &str) -> String {
        match self {
            Self::Lower | Self::Snake => name.to_owned(),
            Self::Upper | Self::ScreamingSnake => name.to_ascii_uppercase(),
            Self::Pascal => name.split('_').map(capitalized).collect(),
            Self::Camel => uncapitalized(&Self::Pascal.field(name)),
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// Returns the name of a variant, which is written in Pascal case.
    pub(super) fn variant(self, name: &str) -> String {
        match self {
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Pascal => name.to_owned(),
            Self::Camel => uncapitalized(name),
            Self::Snake => snake(name),
            Self::ScreamingSnake => snake(name).to_ascii_uppercase(),
            Self::Kebab => snake(name).replace('_', "-"),
            Self::ScreamingKebab => snake(name).to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (n, letter) in name.char_indices() {
        if n > 0 && letter.is_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

fn uncapitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_lowercase().to_string() + letters.as_str())
}
