//! A parameter that takes the value of a resolver, in a tool or in another resolver.

use crate::types::{is_str, ungrouped};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, Path, Result, Type, parse_quote, spanned::Spanned as _};

/// A parameter that takes the value of a resolver.
pub(crate) struct ResolvedParam {
    path: Path,
    /// The type of the value. For a parameter `&T` it is `T`, and the call borrows from an `Arc<T>`.
    ty: Type,
    lent: bool,
}

impl ResolvedParam {
    /// Reads `#[resolve(..)]`, if the parameter has it.
    pub(crate) fn read(attrs: &[Attribute], ty: &Type) -> Result<Option<Self>> {
        let mut marks = attrs.iter().filter(|attr| attr.path().is_ident("resolve"));
        let Some(mark) = marks.next() else { return Ok(None) };
        if let Some(second) = marks.next() {
            return Err(Error::new(second.span(), "a parameter takes the value of one resolver"));
        }
        let path: Path = mark.parse_args().map_err(|fault| {
            // For `#[resolve]` without a list, the span of the error is the whole macro call.
            let words = "the name of a resolver is missing: `#[resolve(confirm_delete)]`";
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
                    "the value of a resolver is shared: take it by value, as `&T` or as `Arc<T>`",
                ));
            }
            _ if is_str(ty) => (parse_quote!(::std::string::String), true),
            Type::Reference(reference) => ((*reference.elem).clone(), true),
            ty => (ty.clone(), false),
        };
        Ok(Some(Self { path, ty, lent }))
    }

    /// Returns the alias of the resolver's type, unique within one function.
    pub(crate) fn alias(place: usize) -> Ident {
        format_ident!("__Resolver{place}", span = Span::mixed_site())
    }

    /// Returns the item that declares the alias.
    pub(crate) fn named(&self, place: usize) -> TokenStream {
        let (alias, path) = (Self::alias(place), &self.path);
        // The path is used once, so an unknown name is reported once.
        quote! { #[allow(non_camel_case_types)] type #alias = #path; }
    }

    /// Returns the alias with the span of the resolver's name.
    pub(crate) fn spanned_alias(&self, place: usize) -> Ident {
        Ident::new(&Self::alias(place).to_string(), self.span())
    }

    /// Returns the span of the resolver's name.
    pub(crate) fn span(&self) -> Span {
        Span::mixed_site().located_at(self.path.span())
    }

    /// Returns the expression that begins the resolver in `round` and waits for its value.
    pub(crate) fn take(&self, place: usize) -> TokenStream {
        let (alias, ty) = (self.spanned_alias(place), &self.ty);
        let ty = if self.lent {
            quote_spanned! { Span::mixed_site().located_at(ty.span()) => ::std::sync::Arc<#ty> }
        } else {
            quote! { #ty }
        };
        let call = quote_spanned! { self.span() => round.take };
        quote! { #call::<#alias, #ty>() }
    }

    /// Returns the argument of the function call, from the variable that holds the value.
    pub(crate) fn call_argument(&self, variable: &Ident) -> TokenStream {
        if self.lent {
            quote! { &#variable }
        } else {
            quote! { #variable }
        }
    }
}

/// Returns a name as a type, with one type parameter for each letter.
pub(crate) fn name_type(name: &str) -> TokenStream {
    name.chars()
        .rev()
        .fold(quote! { () }, |rest, letter| quote! { ::antiphon::__expanded::Name<#letter, #rest> })
}
