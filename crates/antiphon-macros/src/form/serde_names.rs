//! The names that serde reads, and what of it a form cannot follow.

use super::{casing::Casing, plain};
use proc_macro2::TokenStream;
use syn::{
    Attribute, Error, Ident, Lit, LitStr, Path, Result, Token, meta::ParseNestedMeta, spanned::Spanned as _,
};

/// What serde's attributes of a type say of all its fields or variants.
#[derive(Default)]
pub(super) struct Names {
    casing: Option<Casing>,
    /// Every field has a default.
    pub(super) defaults: bool,
}

/// What serde's attributes of a field or variant say.
#[derive(Default)]
pub(super) struct Own {
    rename: Option<String>,
    /// It has a default when it is absent.
    pub(super) default: bool,
    /// It is never read.
    pub(super) skipped: bool,
}

impl Names {
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
                    pass(meta)?;
                }
                "tag" | "content" | "untagged" | "from" | "try_from" | "remote" | "transparent"
                | "field_identifier" | "variant_identifier" => return Err(unlike(&meta.path, key)),
                _ => pass(meta)?,
            }
            Ok(())
        })?;
        Ok(names)
    }

    pub(super) fn field(&self, own: &Own, ident: &Ident) -> String {
        self.name(own, ident, Casing::field)
    }

    pub(super) fn variant(&self, own: &Own, ident: &Ident) -> String {
        self.name(own, ident, Casing::variant)
    }

    fn name(&self, own: &Own, ident: &Ident, cased: fn(Casing, &str) -> String) -> String {
        let plain = plain(ident);
        own.rename
            .clone()
            .unwrap_or_else(|| self.casing.map_or_else(|| plain.clone(), |casing| cased(casing, &plain)))
    }
}

impl Own {
    pub(super) fn read(attrs: &[Attribute]) -> Result<Self> {
        let mut own = Self::default();
        read(attrs, |meta, key| {
            match key {
                "rename" => own.rename = deserialized(meta)?.map(|name| name.value()).or(own.rename.take()),
                "default" => {
                    own.default = true;
                    pass(meta)?;
                }
                "skip" | "skip_deserializing" => own.skipped = true,
                "flatten" | "with" | "deserialize_with" | "other" | "untagged" => {
                    return Err(unlike(&meta.path, key));
                }
                _ => pass(meta)?,
            }
            Ok(())
        })?;
        Ok(own)
    }
}

fn unlike(path: &Path, key: &str) -> Error {
    let told = format!(
        "serde's `{key}` reads something else than a derived form asks: leave it out, or implement the trait by hand"
    );
    Error::new(path.span(), told)
}

fn read(attrs: &[Attribute], mut each: impl FnMut(&ParseNestedMeta<'_>, &str) -> Result<()>) -> Result<()> {
    attrs.iter().filter(|attr| attr.path().is_ident("serde")).try_for_each(|attr| {
        attr.parse_nested_meta(|meta| {
            let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            each(&meta, &key)
        })
    })
}

/// `key = ".."`, or `key(serialize = "..", deserialize = "..")`, of which the second counts.
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
    let refuse = || Error::new(name.span(), "serde has no such `rename_all`");
    known.map(|(_, casing)| *casing).ok_or_else(refuse)
}

/// Reads over what is of no concern here; whether it is right is serde's to say.
fn pass(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Lit>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let group;
        syn::parenthesized!(group in meta.input);
        group.parse::<TokenStream>()?;
    }
    Ok(())
}
