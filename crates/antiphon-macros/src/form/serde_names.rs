//! The names that serde reads, and the attributes of serde that a form does not support.

use crate::errors::plain;
use proc_macro2::TokenStream;
use syn::{
    Attribute, Error, Ident, Lit, LitStr, Path, Result, Token, meta::ParseNestedMeta, spanned::Spanned as _,
};

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
