//! The replacement of a function or an impl with an error, so that the compiler reports only that error.
//!
//! Without a replacement, every use of the function would be an error too, and the items in its body would be unused.
//! An editor can also still analyse the body.

use super::{expand::definition_type, kind::Kind};
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::{Error, FnArg, ItemFn, ItemImpl, Visibility, spanned::Spanned as _};

/// Returns the error, and a function of the same name without a definition. The function contains the written function
/// without the attributes of its parameters, which were already removed.
pub(super) fn function(kind: Kind, item: &ItemFn, fault: &Error) -> TokenStream {
    let (own, complaint) = (Span::mixed_site(), fault.to_compile_error());
    if item.sig.inputs.iter().any(|input| matches!(input, FnArg::Receiver(_))) {
        return quote_spanned! { own => #complaint #[allow(unused)] #item };
    }
    let mut written = item.clone();
    written.vis = Visibility::Inherited;
    // The error already says that `async` is missing.
    written.sig.asyncness.get_or_insert_with(|| syn::Token![async](item.sig.span()));
    let (vis, ident) = (&item.vis, &item.sig.ident);
    let (future, define, made) = (kind.future(), kind.define(), definition_type(kind));
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

/// Returns the error, and the impl without its marks for a type that offers nothing.
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
