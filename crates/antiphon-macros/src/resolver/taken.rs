//! A parameter that a resolver fills in, on either side: in a tool, and in another resolver.

use crate::define::shape::{is_str, ungrouped};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, Path, Result, Type, parse_quote, spanned::Spanned as _};

/// A parameter that takes what a resolver gives.
pub(crate) struct Taken {
    path: Path,
    /// What is taken: of `&T` it is lent from an `Arc<T>`.
    ty: Type,
    lent: bool,
}

impl Taken {
    /// Reads `#[resolve(..)]`, if it is there.
    pub(crate) fn read(attrs: &[Attribute], ty: &Type) -> Result<Option<Self>> {
        let mut marks = attrs.iter().filter(|attr| attr.path().is_ident("resolve"));
        let Some(mark) = marks.next() else { return Ok(None) };
        if let Some(second) = marks.next() {
            return Err(Error::new(second.span(), "one resolver gives the value"));
        }
        let path: Path = mark.parse_args().map_err(|fault| {
            // Of `#[resolve]` the span is that of the whole.
            let words = "the name of a resolver stands here: `#[resolve(confirm_delete)]`";
            if fault.span().source_text().is_some() {
                Error::new(fault.span(), words)
            } else {
                Error::new(mark.span(), words)
            }
        })?;
        let (ty, lent) = match ungrouped(ty) {
            Type::Reference(reference) if reference.mutability.is_some() => {
                return Err(Error::new(
                    ty.span(),
                    "what a resolver gives is shared: take it by value, as `&T` or as `Arc<T>`",
                ));
            }
            _ if is_str(ty) => (parse_quote!(::std::string::String), true),
            Type::Reference(reference) => ((*reference.elem).clone(), true),
            ty => (ty.clone(), false),
        };
        Ok(Some(Self { path, ty, lent }))
    }

    /// The name of the resolver's type, among those of one function.
    pub(crate) fn alias(place: usize) -> Ident {
        format_ident!("__Resolver{place}", span = Span::mixed_site())
    }

    /// The item that makes the name.
    pub(crate) fn named(&self, place: usize) -> TokenStream {
        let (alias, path) = (Self::alias(place), &self.path);
        // One mention of the path: one complaint where there is nothing of the name.
        quote! { #[allow(non_camel_case_types)] type #alias = #path; }
    }

    /// The same name, as standing where the resolver is named.
    pub(crate) fn alias_there(&self, place: usize) -> Ident {
        Ident::new(&Self::alias(place).to_string(), self.span())
    }

    /// Where the resolver is named.
    pub(crate) fn span(&self) -> Span {
        Span::mixed_site().located_at(self.path.span())
    }

    /// Begins the resolver in `round`: what waits for its value.
    pub(crate) fn take(&self, place: usize) -> TokenStream {
        let (alias, ty) = (self.alias_there(place), &self.ty);
        let ty = if self.lent {
            quote_spanned! { Span::mixed_site().located_at(ty.span()) => ::std::sync::Arc<#ty> }
        } else {
            quote! { #ty }
        };
        let call = quote_spanned! { self.span() => round.take };
        quote! { #call::<#alias, #ty>() }
    }

    /// The argument of the function, from the variable that holds the value.
    pub(crate) fn passed(&self, variable: &Ident) -> TokenStream {
        if self.lent {
            quote! { &#variable }
        } else {
            quote! { #variable }
        }
    }
}

/// A name as a type, letter by letter.
pub(crate) fn name_type(name: &str) -> TokenStream {
    name.chars()
        .rev()
        .fold(quote! { () }, |rest, letter| quote! { ::antiphon::__expanded::Name<#letter, #rest> })
}
