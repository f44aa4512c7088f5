//! The settings of `#[tool(..)]`, `#[prompt(..)]` and `#[resource(..)]` for the entry in a list: texts, icons, `_meta`, annotations.

use super::{kind::Kind, settings::Settings, template::Template};
use crate::form::attributes::{Given, Value, doc_comment};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, Expr, Ident, Result, spanned::Spanned as _};

/// Returns the method calls that complete the definition.
pub(super) fn shown(
    kind: Kind,
    settings: &mut Settings,
    template: Option<&Template>,
    attrs: &[Attribute],
) -> Result<TokenStream> {
    let mut setters = TokenStream::new();
    if let Some((title, _)) = settings.text("title")? {
        setters.extend(quote! { .title(#title) });
    }
    let description = settings.text("description")?.map(|(text, _)| text);
    if let Some(description) = description.or_else(|| doc_comment(attrs)) {
        setters.extend(quote! { .description(#description) });
    }
    while let Some(icon) = settings.expression("icon", "\"https://..\"")? {
        let icon = converted(&icon);
        setters.extend(quote! { .icon(#icon) });
    }
    if let Some(meta) = settings.expression("meta", "json!({..})")? {
        refuse_literal(&meta, "`meta` is an object: `meta = json!({\"com.example/unit\": \"EUR\"})`")?;
        let meta = converted(&meta);
        setters.extend(quote! { .meta(#meta) });
    }
    match kind {
        Kind::Tool => setters.extend(tool(settings)?),
        Kind::Prompt => {}
        Kind::Resource => setters.extend(resource(settings, template)?),
    }
    Ok(setters)
}

/// Returns the conversion of an expression. The compiler reports a missing one at the expression.
fn converted(value: &Expr) -> TokenStream {
    quote_spanned! { value.span() => ::core::convert::Into::into(#value) }
}

fn refuse_literal(value: &Expr, fault: &str) -> Result<()> {
    match value {
        Expr::Lit(literal) => Err(Error::new(literal.span(), fault)),
        _ => Ok(()),
    }
}

fn tool(settings: &mut Settings) -> Result<TokenStream> {
    let mut setters = hints(settings)?;
    if let Some(result) = settings.type_of("returns", "Found")? {
        let span = result.span();
        setters.extend(quote_spanned! { span => .returns::<#result>() });
    }
    if let Some((uri, span)) = settings.text("ui")? {
        // > URI MUST start with `ui://` scheme
        if uri.strip_prefix("ui://").is_none_or(str::is_empty) {
            let fault = format!("`{uri}` is not the URI of a view: write `ui = \"ui://server/view.html\"`");
            return Err(Error::new(span, fault));
        }
        setters.extend(quote! { .ui(#uri) });
    }
    let mut visibility = Vec::new();
    for word in settings.words("ui_visibility")? {
        let known = [("model", "Model"), ("app", "App")];
        visibility.push(variant(&word, &known, "one that calls tools", "model or app")?);
    }
    if !visibility.is_empty() {
        setters.extend(quote! { .ui_visibility([#(::antiphon::server::apps::Visibility::#visibility),*]) });
    }
    Ok(setters)
}

/// Returns the method call for the hints of a tool.
fn hints(settings: &mut Settings) -> Result<TokenStream> {
    let mut hints = TokenStream::new();
    for (key, hint) in [
        ("read_only", "read_only_hint"),
        ("destructive", "destructive_hint"),
        ("idempotent", "idempotent_hint"),
        ("open_world", "open_world_hint"),
    ] {
        if let Some(yes) = settings.flag(key)? {
            let hint = format_ident!("{hint}");
            hints.extend(quote! { hints.#hint = ::core::option::Option::Some(#yes); });
        }
    }
    if hints.is_empty() {
        return Ok(hints);
    }
    Ok(quote! { .annotations({
        let mut hints = <::antiphon::__expanded::ToolAnnotations as ::core::default::Default>::default();
        #hints
        hints
    }) })
}

fn resource(settings: &mut Settings, template: Option<&Template>) -> Result<TokenStream> {
    let mut setters = TokenStream::new();
    if let Some((mime_type, _)) = settings.text("mime_type")? {
        setters.extend(quote! { .mime_type(#mime_type) });
    }
    if let Some((bytes, span)) = settings.count("size")? {
        if template.is_some_and(|template| !template.variables.is_empty()) {
            return Err(Error::new(span, "the resources of a template have no common size: remove `size`"));
        }
        setters.extend(quote! { .size(#bytes) });
    }
    if let Some(hint) = settings.expression("cache", "CacheHint::private(MINUTE)")? {
        refuse_literal(&hint, "`cache` is a `CacheHint`: `cache = CacheHint::private(MINUTE)`")?;
        setters.extend(quote! { .cache(#hint) });
    }
    setters.extend(annotations(settings)?);
    Ok(setters)
}

/// Returns the method call for the annotations of a resource.
fn annotations(settings: &mut Settings) -> Result<TokenStream> {
    let mut members = TokenStream::new();
    let mut audience = Vec::new();
    for word in settings.words("audience")? {
        let known = [("user", "User"), ("assistant", "Assistant")];
        audience.push(variant(&word, &known, "a role", "user or assistant")?);
    }
    if !audience.is_empty() {
        members.extend(quote! {
            annotations.audience = ::core::option::Option::Some(::std::vec![#(::antiphon::__expanded::Role::#audience),*]);
        });
    }
    if let Some(given) = settings.value("priority")? {
        let priority = priority(&given)?;
        members.extend(quote! { annotations.priority = ::antiphon::__expanded::priority(#priority); });
    }
    if let Some((time, _)) = settings.text("last_modified")? {
        members.extend(quote! {
            annotations.last_modified = ::core::option::Option::Some(::std::string::String::from(#time));
        });
    }
    if members.is_empty() {
        return Ok(members);
    }
    Ok(quote! { .annotations({
        let mut annotations = <::antiphon::__expanded::Annotations as ::core::default::Default>::default();
        #members
        annotations
    }) })
}

fn priority(given: &Given) -> Result<f64> {
    let priority = match given.value {
        Value::Whole(0) => Some(0.0),
        Value::Whole(1) => Some(1.0),
        Value::Float(float) => Some(float).filter(|float| (0.0..=1.0).contains(float)),
        _ => None,
    };
    priority.ok_or_else(|| {
        Error::new(given.span, "`priority` is a number from 0 (optional) to 1 (required): `priority = 0.5`")
    })
}

/// Returns the variant that a word names.
fn variant(word: &Ident, known: &[(&str, &str)], what: &str, choices: &str) -> Result<Ident> {
    let found = known.iter().find(|(known, _)| word == known);
    let fault = || Error::new(word.span(), format!("`{word}` is not {what}: use {choices}"));
    found.map(|(_, variant)| format_ident!("{variant}")).ok_or_else(fault)
}
