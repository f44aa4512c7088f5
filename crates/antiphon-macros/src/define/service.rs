//! `#[server]`: an impl whose marked methods are tools, prompts and resources of a server.

use super::{
    expand::{definition, definition_type},
    fallback,
    function::{Context, Function},
    kind::Kind,
};
use crate::{errors::Errors, names::UniqueNames};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{
    Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Result, parse_quote, spanned::Spanned as _,
};

/// Returns the impl without its marks, and the impl of `Service`.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if let Some(token) = attribute.into_iter().next() {
        return Err(Error::new(token.span(), "`#[server]` takes no settings: they belong to the methods"));
    }
    let place = Error::new_spanned(
        item.clone().into_iter().next(),
        "`#[server]` must be above `impl Files { .. }`, whose methods are marked with `#[tool]`, `#[prompt]` or `#[resource]`",
    );
    let mut item: ItemImpl = syn::parse2(item).map_err(|_| place)?;
    if let Some((path, _)) = &item.trait_ {
        return Err(Error::new(
            path.span(),
            "`#[server]` must be above an inherent impl: methods of a trait cannot be marked",
        ));
    }
    let mut errors = Errors::default();
    let mut offers = Vec::new();
    let home = Context::Method { generic: !item.generics.params.is_empty() };
    let mut seen = Kind::ALL.map(|kind| (kind, UniqueNames::new(kind.name())));
    for method in item.items.iter_mut().filter_map(as_method) {
        let Some(marked) = errors.note(Mark::take(method)).flatten() else { continue };
        let Some((function, offer)) = errors.note(marked.expand(home, method)) else { continue };
        for (kind, seen) in &mut seen {
            if *kind == function.kind {
                let name =
                    function.template.as_ref().map_or(function.name.clone(), |uri| uri.literal.value());
                errors.note(seen.add(&name, function.name_span));
            }
        }
        offers.push(offer);
    }
    let nothing =
        "the impl has no marked method: mark methods with `#[tool]`, `#[prompt]` or `#[resource(\"..\")]`";
    let some = if offers.is_empty() { Err(Error::new(item.self_ty.span(), nothing)) } else { Ok(()) };
    if let Err(fault) = errors.done().and(some) {
        return Ok(fallback::service(&item, &fault));
    }
    let self_ty = &item.self_ty;
    let mut generics = item.generics.clone();
    if !generics.params.is_empty() {
        // The bound is checked where the service is added to a server and its parameters are known.
        let bounds = generics.make_where_clause();
        bounds.predicates.push(parse_quote!(Self: ::core::marker::Send + ::core::marker::Sync + 'static));
    }
    let (generics, _, bounds) = generics.split_for_impl();
    Ok(quote_spanned! { Span::mixed_site() =>
        #item

        #[automatically_derived]
        impl #generics ::antiphon::__expanded::Service for #self_ty #bounds {
            fn offer(
                self: ::std::sync::Arc<Self>,
                states: &::antiphon::__expanded::States,
                offered: &mut ::antiphon::__expanded::Offered,
            ) -> ::core::result::Result<(), ::antiphon::__expanded::BuildError> {
                let this = self;
                #(#offers)*
                ::core::result::Result::Ok(())
            }
        }
    })
}

fn as_method(item: &mut ImplItem) -> Option<&mut ImplItemFn> {
    match item {
        ImplItem::Fn(method) => Some(method),
        _ => None,
    }
}

/// The mark of a method: `#[tool]`, `#[prompt]` or `#[resource]`.
struct Mark {
    kind: Kind,
    attribute: TokenStream,
}

impl Mark {
    /// Removes the mark from a method, if it has one.
    fn take(method: &mut ImplItemFn) -> Result<Option<Self>> {
        let mut marks: Vec<(Kind, Attribute)> = Vec::new();
        method.attrs.retain(|attr| match Kind::of(attr) {
            Some(kind) => {
                marks.push((kind, attr.clone()));
                false
            }
            None => true,
        });
        if let Some((_, second)) = marks.get(1) {
            return Err(Error::new(
                second.span(),
                "a method has at most one mark: a tool, a prompt or a resource",
            ));
        }
        let Some((kind, attr)) = marks.pop() else { return Ok(None) };
        let attribute = match attr.meta {
            Meta::Path(_) => TokenStream::new(),
            Meta::List(list) => list.tokens,
            Meta::NameValue(pair) => {
                let fault = format!("settings must be in parentheses: `#[{}(..)]`", kind.name());
                return Err(Error::new_spanned(pair.to_token_stream(), fault));
            }
        };
        Ok(Some(Self { kind, attribute }))
    }

    /// Returns the model of the method, and the statement that offers the method.
    fn expand(self, home: Context, method: &mut ImplItemFn) -> Result<(Function, TokenStream)> {
        let Self { kind, attribute } = self;
        let function = Function::read(kind, home, attribute, &method.attrs, &mut method.sig)?;
        let ident = &function.ident;
        let this = Ident::new("this", Span::mixed_site());
        let this = Some(&this).filter(|_| function.takes_self);
        let definition = definition(&function, &quote! { Self::#ident }, this);
        let made = definition_type(kind);
        let own = Span::mixed_site();
        let offer = match kind {
            Kind::Tool => quote_spanned! { own => offered.tools.push(made) },
            Kind::Prompt => quote_spanned! { own => offered.prompts.push(made) },
            Kind::Resource => quote_spanned! { own => offered.add(made) },
        };
        let kept =
            this.map(|this| quote_spanned! { own => let #this = ::core::clone::Clone::clone(&#this); });
        let offer = quote_spanned! { own => {
            #kept
            let made: ::core::result::Result<#made, ::antiphon::__expanded::BuildError> = (|| #definition)();
            let made = made?;
            #offer;
        } };
        Ok((function, offer))
    }
}
