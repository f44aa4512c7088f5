//! The definition as an expression, which runs when the server is built.

use super::{
    function::{Function, Param},
    kind::Kind,
    resolver_code::{ResolverCode, resolver_code},
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// Returns a block whose value is a `Result` of the definition. `states` is in scope. `callee` is the path of the
/// function. `this` is, for methods, a variable with an `Arc` of the receiver.
pub(super) fn definition(function: &Function, callee: &TokenStream, this: Option<&Ident>) -> TokenStream {
    let Function { kind, name, setters, .. } = function;
    let user = format!("{} `{name}`", kind.with_article().replacen('a', "the", 1));
    let slots = function.arguments().rev().fold(quote! { () }, |rest, (_, argument)| {
        let slot = argument.slot(*kind);
        quote! { (#slot, #rest) }
    });
    let values =
        function.arguments().rev().fold(quote! { () }, |rest, (variable, _)| quote! { (#variable, #rest) });
    let (states, types): (Vec<_>, Vec<_>) = function.states().unzip();
    let outcome = outcome(function);
    let resolver_code = resolver_code(function);
    let before = resolver_code.as_ref().map(|resolver_code| &resolver_code.before);
    let kept =
        states.iter().chain(this).chain(resolver_code.as_ref().map(|resolver_code| &resolver_code.kept));
    let kept = quote! { #(let #kept = ::core::clone::Clone::clone(&#kept);)* };
    // The variables have this crate's hygiene, because a parameter of the function may also be named `ctx`.
    let own = Span::mixed_site();
    let call = call(function, callee, this, resolver_code.as_ref());
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

/// Returns the expression of the handler's outcome.
fn outcome(function: &Function) -> TokenStream {
    let Function { kind, output, .. } = function;
    let result = kind.result();
    let span = Span::mixed_site().located_at(function.output_span);
    quote_spanned! { span => ::antiphon::__expanded::outcome::<::antiphon::wire::#result, #output>() }
}

/// Returns the runtime function that creates the definition, and its first arguments.
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
            let make = Ident::new(kind.name(), Span::mixed_site());
            (quote! { ::antiphon::__expanded::#make }, quote! { #name, })
        }
    }
}

/// Returns the expression of the boxed future of one call.
fn call(
    function: &Function,
    callee: &TokenStream,
    this: Option<&Ident>,
    resolver_code: Option<&ResolverCode>,
) -> TokenStream {
    let passed = function.params.iter().enumerate().map(|(place, param)| {
        let variable = Function::variable(place);
        match param {
            Param::Ctx => quote_spanned! { Span::mixed_site() => &ctx },
            Param::Argument(argument) => argument.call_argument(&variable),
            Param::State(_) => quote! { #variable },
            Param::Resolved(taken) => taken.call_argument(&variable),
        }
    });
    let this = this.filter(|_| function.takes_self).map(|this| quote! { &#this, });
    let mut run = quote! { run };
    let mut handler = quote! { #callee(#this #(#passed),*) };
    if let Some(ResolverCode { statements, .. }) = resolver_code {
        run = quote! { run_resolved };
        handler = quote_spanned! { Span::mixed_site() => async {
            #statements
            ::core::result::Result::<_, ::antiphon::Error>::Ok(#handler.await)
        } };
    }
    // The compiler reports a future that is not `Send` at the name of the function.
    let span = Span::mixed_site().located_at(function.ident.span());
    quote_spanned! { span =>
        ::antiphon::__expanded::boxed(move || async move {
            ::antiphon::__expanded::#run(&ctx, outcome, ::core::pin::pin!(#handler)).await
        })
    }
}

/// Returns the type of a definition.
pub(super) fn definition_type(kind: Kind) -> TokenStream {
    match kind {
        Kind::Tool => quote! { ::antiphon::server::Tool },
        Kind::Prompt => quote! { ::antiphon::server::Prompt },
        Kind::Resource => quote! { ::antiphon::__expanded::AnyResource },
    }
}
