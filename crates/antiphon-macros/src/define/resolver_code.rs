//! The code for parameters whose values come from resolvers.

use super::function::Function;
use crate::resolver::{ResolvedParam, name_type};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

/// The additional code of a definition with resolvers.
pub(super) struct ResolverCode {
    /// The statements before the definition. `states` is in scope.
    pub(super) before: TokenStream,
    /// A variable of those statements, which is cloned for each call.
    pub(super) kept: Ident,
    /// The statements that set the variable of each resolved parameter. They are part of the handler's future, in a
    /// block that returns `Result<_, antiphon::Error>`. `ctx` and the variables of the arguments are in scope.
    pub(super) statements: TokenStream,
}

/// Returns the code, or `None` if no parameter is resolved.
pub(super) fn resolver_code(function: &Function) -> Option<ResolverCode> {
    let taken: Vec<(usize, &ResolvedParam)> = function.resolved().collect();
    let (last, _) = taken.last()?;
    let own = Span::mixed_site();
    let kept = Ident::new("provided", own);
    let (items, provides) = (items(function, &taken), taken.iter().map(|(place, taken)| {
        let alias = taken.spanned_alias(*place);
        quote_spanned! { own => <#alias as ::antiphon::__expanded::Resolves>::provide(states, &mut provided)?; }
    }));
    let takes = taken.iter().rev().fold(quote! { () }, |rest, (place, taken)| {
        let take = taken.take(*place);
        quote! { (#take, #rest) }
    });
    let values = taken.iter().rev().fold(quote! { () }, |rest, (place, _)| {
        let variable = Function::variable(*place);
        quote! { (#variable, #rest) }
    });
    let arguments: Vec<Ident> = function.arguments().map(|(variable, _)| variable).collect();
    let types = arguments.iter().map(|_| quote! { _ });
    let checked = checked(*last);
    Some(ResolverCode {
        before: quote_spanned! { own =>
            #items
            let mut provided = <::antiphon::__expanded::Provided as ::core::default::Default>::default();
            #(#provides)*
            let provided = ::std::sync::Arc::new(provided);
        },
        kept,
        statements: quote_spanned! { own =>
            let arguments: __Arguments<{ #checked.passed() }, #(#types),*> = __Arguments(#(#arguments),*);
            let #values = {
                let round = ::antiphon::__expanded::Round::new(&ctx, &arguments, &provided);
                let takes = #takes;
                round.run(takes).await?
            };
            let __Arguments(#(#arguments),*) = arguments;
        },
    })
}

/// Returns a type with the arguments, in which resolvers look them up, and the check that all are present.
///
/// The result of the check is a part of the type. If the check fails, the compiler reports only that.
fn items(function: &Function, taken: &[(usize, &ResolvedParam)]) -> TokenStream {
    let user = format!("{} `{}`", function.kind.name(), function.name);
    let names: Vec<&str> = function.arguments().map(|(_, argument)| argument.parameter.as_str()).collect();
    let types: Vec<Ident> = (0..names.len()).map(|place| format_ident!("A{place}")).collect();
    let lookups = names.iter().zip(&types).enumerate().map(|(place, (name, ty))| {
        let (name, place) = (name_type(name), syn::Index::from(place));
        quote! {
            impl<const CHECKED: bool, #(#types: ::core::marker::Sync + 'static),*> ::antiphon::__expanded::HasArgument<#name>
                for __Arguments<CHECKED, #(#types),*>
            {
                type Type = #ty;

                fn argument(&self) -> &#ty {
                    &self.#place
                }
            }
        }
    });
    let mut before = quote! { ::antiphon::__expanded::Checked::NONE };
    let checks = taken.iter().map(|(place, taken)| {
        let (named, alias, checked) = (taken.named(*place), taken.spanned_alias(*place), checked(*place));
        let check = quote_spanned! { taken.span() =>
            ::antiphon::__expanded::check(
                #user,
                __NAMES,
                #before,
                &<#alias as ::antiphon::__expanded::Described<::antiphon::__expanded::Depth>>::DESCRIPTION,
            )
        };
        before = quote! { #checked };
        quote! {
            #named
            const #checked: ::antiphon::__expanded::Checked = #check;
        }
    });
    quote! {
        const __NAMES: &[&str] = &[#(#names),*];
        #(#checks)*
        struct __Arguments<const CHECKED: bool, #(#types),*>(#(#types),*);
        impl<const CHECKED: bool, #(#types: ::core::marker::Sync + 'static),*> ::antiphon::__expanded::Arguments
            for __Arguments<CHECKED, #(#types),*> {}
        #(#lookups)*
    }
}

fn checked(place: usize) -> Ident {
    format_ident!("__CHECKED_{place}", span = Span::mixed_site())
}
