//! `#[resolver]`, and the code that `#[resolve(..)]` adds to tools, prompts and resources.
//!
//! `model` reads a signature. `expand` (below) writes a type beside the function, with the same name: the type has the
//! parameters and the value of the resolver, so that a tool needs only the name. `model` also writes the code for a
//! parameter that takes the value of a resolver, in a tool or in another resolver.

mod model;

pub(crate) use model::{ResolvedParam, name_type};

use model::{Argument, Model, Param};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, ItemFn, Result, spanned::Spanned as _};

// The expansion of a resolver: the unchanged function, and a type of the same name.

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let place =
        Error::new_spanned(item.clone().into_iter().next(), "`#[resolver]` must be above an `async fn`");
    let mut item: ItemFn = syn::parse2(item).map_err(|_| place)?;
    let model = Model::read(attribute, &mut item.sig)?;
    let vis = &item.vis;
    let Model { ident, .. } = &model;
    let names = model.taken().map(|(place, taken)| taken.named(place));
    let (resolves, described, resolver) = (resolves(&model), described(&model), resolver(&model));
    Ok(quote_spanned! { Span::mixed_site() =>
        #item

        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #vis struct #ident {}

        const _: () = {
            #(#names)*
            #resolves
            #described
            #resolver
        };
    })
}

/// Returns the impl of `Resolves`, for all tools.
fn resolves(model: &Model) -> TokenStream {
    let Model { ident, name, output, output_span, .. } = model;
    let states = model.params.iter().filter_map(|param| match param {
        Param::State(ty) => {
            Some(quote_spanned! { Span::mixed_site() => provided.add::<#ty>(states, #name)?; })
        }
        _ => None,
    });
    let before = model.taken().map(|(place, taken)| {
        let alias = taken.spanned_alias(place);
        quote_spanned! { Span::mixed_site() => <#alias as ::antiphon::__expanded::Resolves>::provide(states, provided)?; }
    });
    let span = Span::mixed_site().located_at(*output_span);
    let value = quote_spanned! { span => <#output as ::antiphon::__expanded::Returned>::Value };
    quote_spanned! { Span::mixed_site() =>
        #[automatically_derived]
        impl ::antiphon::__expanded::Resolves for #ident {
            type Value = #value;
            const NAME: &'static str = #name;

            fn provide(
                states: &::antiphon::__expanded::States,
                provided: &mut ::antiphon::__expanded::Provided,
            ) -> ::core::result::Result<(), ::antiphon::__expanded::BuildError> {
                #(#states)*
                #(#before)*
                ::core::result::Result::Ok(())
            }
        }
    }
}

/// Returns the impl of `Described`, which the compiler evaluates.
fn described(model: &Model) -> TokenStream {
    let Model { ident, name, .. } = model;
    let takes = model.arguments().map(|argument| &argument.name);
    let (bounds, after): (Vec<_>, Vec<_>) = model
        .taken()
        .map(|(place, taken)| {
            let alias = taken.spanned_alias(place);
            let described = quote_spanned! { taken.span() => ::antiphon::__expanded::Described<__D> };
            (quote! { #alias: #described, }, quote! { &<#alias as #described>::DESCRIPTION })
        })
        .unzip();
    let span = Span::mixed_site().located_at(ident.span());
    let check = quote_spanned! { span =>
        ::antiphon::__expanded::check_cycles(
            &<#ident as ::antiphon::__expanded::Described<::antiphon::__expanded::Depth>>::DESCRIPTION,
        )
    };
    quote_spanned! { Span::mixed_site() =>
        #[automatically_derived]
        impl<__D> ::antiphon::__expanded::Described<::antiphon::__expanded::Deeper<__D>> for #ident
        where
            #(#bounds)*
        {
            const DESCRIPTION: ::antiphon::__expanded::Description = ::antiphon::__expanded::Description {
                name: #name,
                id: ::core::concat!(::core::module_path!(), " ", ::core::line!(), ":", ::core::column!()),
                takes: &[#(#takes),*],
                after: &[#(#after),*],
            };
        }

        const _: () = #check;
    }
}

/// Returns the impl of `Resolver`, for tools with the arguments of the resolver.
fn resolver(model: &Model) -> TokenStream {
    let ident = &model.ident;
    let arguments = model.arguments().map(|Argument { name, ty, .. }| {
        let (name, span) = (name_type(name), Span::mixed_site().located_at(ty.span()));
        let lends = quote_spanned! { span => ::antiphon::__expanded::Lends<#ty> };
        quote! { __A: ::antiphon::__expanded::HasArgument<#name, Type: #lends>, }
    });
    let before = model.taken().map(|(place, taken)| {
        let alias = taken.spanned_alias(place);
        quote_spanned! { taken.span() => #alias: ::antiphon::__expanded::Resolver<__A>, }
    });
    let body = body(model);
    quote_spanned! { Span::mixed_site() =>
        #[automatically_derived]
        impl<__A: ::antiphon::__expanded::Arguments> ::antiphon::__expanded::Resolver<__A> for #ident
        where
            #(#arguments)*
            #(#before)*
        {
            fn begin<'r>(
                round: &'r ::antiphon::__expanded::Round<'_, __A>,
            ) -> ::antiphon::__expanded::Running<'r, Self::Value> {
                #body
            }
        }
    }
}

/// Returns the body that calls the function.
fn body(model: &Model) -> TokenStream {
    let Model { ident, name, params, .. } = model;
    let own = Span::mixed_site();
    let takes = model.taken().rev().fold(quote! { () }, |rest, (place, taken)| {
        let take = taken.take(place);
        quote! { (#take, #rest) }
    });
    let values = model.taken().rev().fold(quote! { () }, |rest, (place, _)| {
        let variable = format_ident!("value_{place}", span = own);
        quote! { (#variable, #rest) }
    });
    let (begun, waits) = match model.taken().next() {
        None => (None, None),
        Some(_) => (
            Some(quote_spanned! { own => let takes = #takes; }),
            Some(quote_spanned! { own => let #values = round.wait(takes).await?; }),
        ),
    };
    let scope = params
        .iter()
        .any(|param| matches!(param, Param::Ctx))
        .then(|| quote_spanned! { own => let ctx = round.scope(#name); });
    let passed = params.iter().enumerate().map(|(place, param)| match param {
        Param::Ctx => quote_spanned! { own => &ctx },
        Param::State(ty) => quote_spanned! { own => round.provided().get::<#ty>() },
        Param::Resolved(taken) => taken.call_argument(&format_ident!("value_{place}", span = own)),
        Param::Argument(Argument { name, ty, lent }) => {
            let name = name_type(name);
            let get = if *lent {
                quote! { borrowed }
            } else {
                quote! { owned }
            };
            let get = quote_spanned! { own.located_at(ty.span()) => ::antiphon::__expanded::#get };
            quote_spanned! { own => #get::<#name, #ty, __A>(round.arguments()) }
        }
    });
    // The compiler reports a future that is not `Send` at the name of the function.
    let boxed = quote_spanned! { own.located_at(ident.span()) => ::antiphon::__expanded::boxed_resolver };
    quote_spanned! { own =>
        #begun
        #boxed(async move {
            #waits
            #scope
            ::antiphon::__expanded::settle(#ident(#(#passed),*).await)
        })
    }
}
