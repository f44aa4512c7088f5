//! A marked function that stands alone.

use super::{
    expand::{definition, made_type},
    function::{Function, Place},
    kind::Kind,
    refused,
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, FnArg, ItemFn, Pat, Result, Signature, Token, parse_quote};

/// The function, whose future now tells what it is.
pub(crate) fn expand(kind: Kind, attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let place = Error::new_spanned(
        item.clone().into_iter().next(),
        format!("`#[{}]` goes above an `async fn`, or a method in an impl with `#[server]`", kind.word()),
    );
    let mut item: ItemFn = syn::parse2(item).map_err(|_| place)?;
    let function = match Function::read(kind, Place::Free, attribute, &item.attrs, &mut item.sig) {
        Ok(function) => function,
        Err(fault) => return Ok(refused::function(kind, &item, &fault)),
    };
    let ident = &function.ident;
    let definition = definition(&function, &quote! { #ident }, None);
    let (define, made) = (kind.define(), made_type(kind));
    let (outer, passed) = outer(&item.sig, &function);
    let ItemFn { attrs, vis, sig, block } = &item;
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

/// The signature of the function that callers see, and how it passes its parameters on.
fn outer(sig: &Signature, function: &Function) -> (Signature, Vec<Ident>) {
    let mut outer = sig.clone();
    outer.asyncness = None;
    let mut passed = Vec::new();
    for (place, input) in outer.inputs.iter_mut().enumerate() {
        let FnArg::Typed(typed) = input else { continue };
        typed.attrs.clear();
        let name = match &*typed.pat {
            // Inside, the name of the function is that of the function.
            Pat::Ident(pat) if pat.ident != function.ident => {
                // Where a resolver is named, no parameter of that name is in the way.
                let mut name = pat.ident.clone();
                name.set_span(Span::mixed_site().located_at(name.span()));
                name
            }
            _ => format_ident!("parameter_{place}"),
        };
        *typed.pat = parse_quote!(#name);
        passed.push(name);
    }
    // With the span, the edition is this crate's: what is returned holds every lifetime, in the edition 2021 too.
    let span = Span::mixed_site().located_at(function.ident.span());
    let (future, output) = (function.kind.future(), &function.output);
    let arrow = Token![->](span);
    let returned = quote_spanned! { span => impl ::antiphon::__expanded::#future<Output = #output> };
    outer.output = parse_quote!(#arrow #returned);
    (outer, passed)
}

/// What is said of the function as others see it.
fn stays_outside(attr: &Attribute) -> bool {
    ["doc", "deprecated", "must_use", "allow"].iter().any(|name| attr.path().is_ident(name))
}

/// What is said of its body.
fn goes_inside(attr: &Attribute) -> bool {
    !["doc", "deprecated", "must_use"].iter().any(|name| attr.path().is_ident(name))
}
