//! The settings of `#[tool(..)]`, `#[prompt(..)]` and `#[resource(..)]` for questions and for calls that another
//! version has begun.

use super::settings::{FUNCTIONS, Settings};
use crate::form::attributes::Value;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, Result};

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
