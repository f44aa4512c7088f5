//! The definition, as the expression that makes it when the server is built.

use super::{
    function::{Function, Param},
    kind::Kind,
    resolved::{Resolving, resolving},
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// A block that returns a `Result` of the definition; `states` is in scope. `callee` is the function's path; `this`, for
/// methods, a variable that holds an `Arc` of what they belong to.
pub(super) fn definition(function: &Function, callee: &TokenStream, this: Option<&Ident>) -> TokenStream {
    let Function { kind, name, setters, .. } = function;
    let user = format!("{} `{name}`", kind.in_words().replacen('a', "the", 1));
    let slots = function.arguments().rev().fold(quote! { () }, |rest, (_, argument)| {
        let slot = argument.slot(*kind);
        quote! { (#slot, #rest) }
    });
    let values =
        function.arguments().rev().fold(quote! { () }, |rest, (variable, _)| quote! { (#variable, #rest) });
    let (states, types): (Vec<_>, Vec<_>) = function.states().unzip();
    let outcome = outcome(function);
    let resolving = resolving(function);
    let before = resolving.as_ref().map(|resolving| &resolving.before);
    let kept = states.iter().chain(this).chain(resolving.as_ref().map(|resolving| &resolving.kept));
    let kept = quote! { #(let #kept = ::core::clone::Clone::clone(&#kept);)* };
    // The names of what is written here are not those of the function's surroundings: it may be called `ctx`.
    let own = Span::mixed_site();
    let call = call(function, callee, this, resolving.as_ref());
    let (make, first) = maker(function);
    quote_spanned! { own => {
        #before
        #(let #states = states.get::<#types>(#user)?;)*
        let outcome = #outcome;
        let made = #make(#first outcome, #slots, move |ctx, #values| {
            #kept
            #call
        })?;
        ::core::result::Result::Ok((made #setters).into())
    } }
}

/// What becomes of its result: an expression.
fn outcome(function: &Function) -> TokenStream {
    let Function { kind, output, .. } = function;
    let result = kind.result();
    let span = Span::mixed_site().located_at(function.output_span);
    quote_spanned! { span => ::antiphon::__expanded::outcome::<::antiphon::wire::#result, #output>() }
}

/// The function of the runtime that makes it, and its first arguments.
fn maker(function: &Function) -> (TokenStream, TokenStream) {
    let name = &function.name;
    match (&function.template, function.kind) {
        (Some(template), _) => {
            let uri = &template.literal;
            let make = if template.variables.is_empty() {
                quote! { resource }
            } else {
                quote! { template }
            };
            (quote! { ::antiphon::__expanded::#make }, quote! { #uri, #name, })
        }
        (None, kind) => {
            let make = Ident::new(kind.word(), Span::mixed_site());
            (quote! { ::antiphon::__expanded::#make }, quote! { #name, })
        }
    }
}

/// The boxed future of one call.
fn call(
    function: &Function,
    callee: &TokenStream,
    this: Option<&Ident>,
    resolving: Option<&Resolving>,
) -> TokenStream {
    let passed = function.params.iter().enumerate().map(|(place, param)| {
        let variable = Function::variable(place);
        match param {
            Param::Ctx => quote_spanned! { Span::mixed_site() => &ctx },
            Param::Argument(argument) => argument.passed(&variable),
            Param::State(_) => quote! { #variable },
            Param::Resolved(taken) => taken.passed(&variable),
        }
    });
    let this = this.filter(|_| function.takes_self).map(|this| quote! { &#this, });
    let mut run = quote! { run };
    let mut handler = quote! { #callee(#this #(#passed),*) };
    if let Some(Resolving { statements, .. }) = resolving {
        run = quote! { run_resolved };
        handler = quote_spanned! { Span::mixed_site() => async {
            #statements
            ::core::result::Result::<_, ::antiphon::Error>::Ok(#handler.await)
        } };
    }
    // A future that is not Send is told where its function stands.
    let span = Span::mixed_site().located_at(function.ident.span());
    quote_spanned! { span =>
        ::antiphon::__expanded::boxed(async move {
            ::antiphon::__expanded::#run(&ctx, outcome, #handler).await
        })
    }
}

/// The type that a definition is made as.
pub(super) fn made_type(kind: Kind) -> TokenStream {
    match kind {
        Kind::Tool => quote! { ::antiphon::server::Tool },
        Kind::Prompt => quote! { ::antiphon::server::Prompt },
        Kind::Resource => quote! { ::antiphon::__expanded::AnyResource },
    }
}
