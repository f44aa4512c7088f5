//! The attributes in `#[form(..)]`, and doc comments.

use proc_macro2::Span;
use syn::{
    Attribute, Error, Expr, ExprLit, Ident, Lit, LitStr, Meta, Result, Token, bracketed,
    ext::IdentExt as _,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
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
