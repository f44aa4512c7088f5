//! A marked function outside of an impl.

use super::{
    expand::{definition, definition_type},
    fallback,
    function::{Context, Function},
    kind::Kind,
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, FnArg, ItemFn, Pat, Result, Signature, Token, parse_quote};

/// Returns the function. Its future has the definition as a type parameter.
pub(crate) fn expand(kind: Kind, attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let place = Error::new_spanned(
        item.clone().into_iter().next(),
        format!(
            "`#[{}]` must be above an `async fn`, or above a method in an impl with `#[server]`",
            kind.name()
        ),
    );
    let mut item: ItemFn = syn::parse2(item).map_err(|_| place)?;
    let function = match Function::read(kind, Context::Free, attribute, &item.attrs, &mut item.sig) {
        Ok(function) => function,
        Err(fault) => return Ok(fallback::function(kind, &item, &fault)),
    };
    let ident = &function.ident;
    let definition = definition(&function, &quote! { #ident }, None);
    let (define, made) = (kind.define(), definition_type(kind));
    let (outer, passed) = outer(&item.sig, &function);
    let ItemFn { attrs, vis, sig, block, .. } = &item;
    let (outside, inside): (Vec<_>, Vec<_>) = (
        attrs.iter().filter(|attr| stays_outside(attr)).collect(),
        attrs.iter().filter(|attr| goes_inside(attr)).collect(),
    );
    Ok(quote_spanned! { Span::mixed_site() =>
        #(#outside)*
        #[allow(clippy::too_many_arguments)]
        #vis #outer {
            #(#inside)*
            #[allow(clippy::too_many_arguments)]
            #sig #block

            struct __Definition;
            #[automatically_derived]
            impl ::antiphon::__expanded::#define for __Definition {
                fn define(
                    states: &::antiphon::__expanded::States,
                ) -> ::core::result::Result<#made, ::antiphon::__expanded::BuildError> #definition
            }
            ::antiphon::__expanded::tagged::<__Definition, _>(#ident(#(#passed),*))
        }
    })
}

/// Returns the signature of the outer function, and the names of its parameters, which it passes to the inner function.
fn outer(sig: &Signature, function: &Function) -> (Signature, Vec<Ident>) {
    let mut outer = sig.clone();
    outer.asyncness = None;
    let mut passed = Vec::new();
    for (place, input) in outer.inputs.iter_mut().enumerate() {
        let FnArg::Typed(typed) = input else { continue };
        typed.attrs.clear();
        let name = match &*typed.pat {
            // In the inner function, the name of the function means the function.
            Pat::Ident(pat) if pat.ident != function.ident => {
                // The hygiene keeps a parameter from hiding a resolver of the same name.
                let mut name = pat.ident.clone();
                name.set_span(Span::mixed_site().located_at(name.span()));
                name
            }
            _ => format_ident!("parameter_{place}"),
        };
        *typed.pat = parse_quote!(#name);
        passed.push(name);
    }
    // The span selects this crate's edition, so the return type captures every lifetime, also in edition 2021.
    let span = Span::mixed_site().located_at(function.ident.span());
    let (future, output) = (function.kind.future(), &function.output);
    let arrow = Token![->](span);
    let returned = quote_spanned! { span => impl ::antiphon::__expanded::#future<Output = #output> };
    outer.output = parse_quote!(#arrow #returned);
    (outer, passed)
}

/// Returns `true` for an attribute that belongs to the outer function.
fn stays_outside(attr: &Attribute) -> bool {
    ["doc", "deprecated", "must_use", "allow"].iter().any(|name| attr.path().is_ident(name))
}

/// Returns `true` for an attribute that belongs to the inner function.
fn goes_inside(attr: &Attribute) -> bool {
    !["doc", "deprecated", "must_use"].iter().any(|name| attr.path().is_ident(name))
}
