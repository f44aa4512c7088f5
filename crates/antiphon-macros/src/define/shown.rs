//! The settings of `#[tool(..)]`, `#[prompt(..)]` and `#[resource(..)]`: for the entry in a list (texts, icons), for questions, and
//! for calls that another build continues.

use crate::{
    define::{
        kind::Kind,
        settings::{FUNCTIONS, Settings},
        template::Template,
    },
    form::attributes::{Given, Value, doc_comment},
};
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

/// Returns the method calls that complete the definition.
pub(super) fn call_settings(settings: &mut Settings) -> Result<TokenStream> {
    let mut setters = versions(settings)?;
    if let Some(seconds) = settings.seconds("answer_timeout")? {
        setters.extend(quote! { .answer_timeout(::core::time::Duration::from_secs(#seconds)) });
    }
    if let Some(seconds) = settings.seconds("timeout")? {
        setters.extend(quote! { .timeout(::core::time::Duration::from_secs(#seconds)) });
    }
    setters.extend(tasks(settings)?);
    setters.extend(needs(settings)?);
    if let Some((_, scopes)) = settings.names(&["scopes"])? {
        setters.extend(quote! { .scopes([#(#scopes),*]) });
    }
    for (setter, example) in FUNCTIONS {
        match &settings.words(setter)?[..] {
            [] => {}
            [function] => {
                let setter = format_ident!("{setter}");
                setters.extend(quote! { .#setter(#function) });
            }
            [_, second, ..] => {
                let fault = format!("`{setter}` takes one function: `{setter}({example})`");
                return Err(Error::new(second.span(), fault));
            }
        }
    }
    Ok(setters)
}

/// Reads whether calls become tasks. Only tools have these settings.
fn tasks(settings: &mut Settings) -> Result<TokenStream> {
    let mut setters = TokenStream::new();
    let mode = settings.text("task")?;
    if let Some((word, span)) = &mode {
        let choice = match word.as_str() {
            "never" => "Never",
            "optional" => "Optional",
            "required" => "Required",
            _ => {
                let fault = format!(
                    "`{word}` is not a valid value: write `task = \"never\"`, `\"optional\"` or `\"required\"`"
                );
                return Err(Error::new(*span, fault));
            }
        };
        let choice = format_ident!("{choice}");
        setters.extend(quote! { .task(::antiphon::server::TaskMode::#choice) });
    }
    let is_optional = mode.is_some_and(|(word, _)| word == "optional");
    if let Some(seconds) = settings.seconds("promote_after")? {
        if !is_optional {
            let fault = "a call is promoted only if the tool says `task = \"optional\"`";
            return Err(Error::new(proc_macro2::Span::call_site(), fault));
        }
        setters.extend(quote! { .promote_after(::core::time::Duration::from_secs(#seconds)) });
    }
    Ok(setters)
}

/// Reads `needs`: the kinds of questions that the function always asks.
fn needs(settings: &mut Settings) -> Result<TokenStream> {
    let mut needs = TokenStream::new();
    for word in settings.words("needs")? {
        let fields: &[&str] = match word.to_string().as_str() {
            "form" => &["form"],
            "url" => &["url"],
            "sampling" => &["sampling"],
            "sampling_tools" => &["sampling", "sampling_tools"],
            "roots" => &["roots"],
            _ => {
                return Err(Error::new(
                    word.span(),
                    format!(
                        "`{word}` is not a kind of question: use form, url, sampling, sampling_tools or roots"
                    ),
                ));
            }
        };
        for field in fields {
            let field = format_ident!("{field}");
            needs.extend(quote! { needs.#field = true; });
        }
    }
    if needs.is_empty() {
        return Ok(needs);
    }
    Ok(quote! { .needs({
        let mut needs = ::antiphon::__expanded::AskSupport::NONE;
        #needs
        needs
    }) })
}

/// Reads the version, and the settings for calls of another version.
fn versions(settings: &mut Settings) -> Result<TokenStream> {
    let mut setters = TokenStream::new();
    if let Some(given) = settings.value("version")? {
        let version = match given.value {
            Value::Whole(whole) => u32::try_from(whole).ok(),
            _ => None,
        };
        let refuse = || Error::new(given.span, "the version must be a whole number: `version = 3`");
        let version = version.ok_or_else(refuse)?;
        setters.extend(quote! { .version(#version) });
    }
    let mut keeps = true;
    if let Some((word, span)) = settings.text("on_version")? {
        keeps = word == "keep";
        let choice = match word.as_str() {
            "keep" => "Keep",
            "reject" => "Reject",
            "restart" => "Restart",
            _ => {
                let fault = format!(
                    "`{word}` is not a valid value: write `on_version = \"keep\"`, \
                     `\"reject\"` or `\"restart\"`"
                );
                return Err(Error::new(span, fault));
            }
        };
        let choice = format_ident!("{choice}");
        setters.extend(quote! { .on_version(::antiphon::server::flow::OnVersion::#choice) });
    }
    setters.extend(migration(settings, keeps)?);
    for flag in ["single_use", "write_ahead", "rerun_after_crash"] {
        if let Some(on) = settings.flag(flag)? {
            let setter = quote::format_ident!("{flag}");
            setters.extend(quote! { .#setter(#on) });
        }
    }
    if settings.flag("lenient_replay")? == Some(true) {
        setters.extend(quote! { .lenient_replay(true) });
    }
    Ok(setters)
}

/// Reads the changes to recorded steps, in the order in which they are written: a later change applies to the names of
/// the earlier ones. `keeps` is true if recorded steps are kept at all.
fn migration(settings: &mut Settings, keeps: bool) -> Result<TokenStream> {
    let mut changes = TokenStream::new();
    while let Some((key, names)) = settings.names(&["added", "rename", "forget", "keep_stale"])? {
        let (word, method) = (&key, format_ident!("{key}"));
        if !keeps {
            return Err(Error::new(
                key.span(),
                format!("with this `on_version` no step is kept: remove `on_version` or `{word}`"),
            ));
        }
        match names.as_slice() {
            [from, to] if key == "rename" && from.value() == to.value() => {
                return Err(Error::new(to.span(), "the new name equals the old name: remove this `rename`"));
            }
            [from, to] if key == "rename" => changes.extend(quote! { .rename(#from, #to) }),
            _ if key == "rename" => {
                return Err(Error::new(
                    key.span(),
                    "`rename` takes the old name and the new name of a step: `rename(\"create\", \"create_db\")`",
                ));
            }
            names => changes.extend(quote! { #(.#method(#names))* }),
        }
    }
    if changes.is_empty() {
        return Ok(changes);
    }
    Ok(quote! { .migrate(::antiphon::server::flow::Migration::new() #changes) })
}
