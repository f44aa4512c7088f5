//! What is left of a function or an impl that is refused, so that the complaint is the only one.
//!
//! Without it, every place that names the function would not compile either, and what only its body uses would be
//! unused. And an editor goes on to understand the body.

use super::{expand::made_type, kind::Kind};
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::{Error, FnArg, ItemFn, ItemImpl, Visibility, spanned::Spanned as _};

/// The complaint, and a function of that name that defines nothing. In it stands what was written, without the
/// attributes of parameters: they were taken off when it was read.
pub(super) fn function(kind: Kind, item: &ItemFn, fault: &Error) -> TokenStream {
    let (own, complaint) = (Span::mixed_site(), fault.to_compile_error());
    if item.sig.inputs.iter().any(|input| matches!(input, FnArg::Receiver(_))) {
        return quote_spanned! { own => #complaint #[allow(unused)] #item };
    }
    let mut written = item.clone();
    written.vis = Visibility::Inherited;
    // That it is missing was said.
    written.sig.asyncness.get_or_insert_with(|| syn::Token![async](item.sig.span()));
    let (vis, ident) = (&item.vis, &item.sig.ident);
    let (future, define, made) = (kind.future(), kind.define(), made_type(kind));
    quote_spanned! { own =>
        #complaint
        #[allow(unused)]
        #vis fn #ident() -> impl ::antiphon::__expanded::#future<Output = ()> {
            #[allow(unused, clippy::all)]
            #written

            struct __Definition;
            impl ::antiphon::__expanded::#define for __Definition {
                fn define(
                    _: &::antiphon::__expanded::States,
                ) -> ::core::result::Result<#made, ::antiphon::__expanded::BuildError> {
                    ::core::unreachable!()
                }
            }
            ::antiphon::__expanded::tagged::<__Definition, _>(async {})
        }
    }
}

/// The complaint, and the impl without marks, of a type that offers nothing.
pub(super) fn service(item: &ItemImpl, fault: &Error) -> TokenStream {
    let complaint = fault.to_compile_error();
    let self_ty = &item.self_ty;
    let mut generics = item.generics.clone();
    generics
        .make_where_clause()
        .predicates
        .push(syn::parse_quote!(Self: ::core::marker::Send + ::core::marker::Sync + 'static));
    let (generics, _, bounds) = generics.split_for_impl();
    quote_spanned! { Span::mixed_site() =>
        #complaint
        #[allow(unused)]
        #item

        #[automatically_derived]
        impl #generics ::antiphon::__expanded::Service for #self_ty #bounds {
            fn offer(
                self: ::std::sync::Arc<Self>,
                _: &::antiphon::__expanded::States,
                _: &mut ::antiphon::__expanded::Offered,
            ) -> ::core::result::Result<(), ::antiphon::__expanded::BuildError> {
                ::core::unreachable!()
            }
        }
    }
}
