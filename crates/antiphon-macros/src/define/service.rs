//! `#[server]`: an impl whose marked methods are what a server offers.

use super::{
    expand::{definition, made_type},
    function::{Function, Place},
    kind::Kind,
    refused,
};
use crate::form::{Faults, Seen};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{
    Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Result, parse_quote, spanned::Spanned as _,
};

/// The impl without the marks, and beside it the one of `Service`.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if let Some(token) = attribute.into_iter().next() {
        return Err(Error::new(
            token.span(),
            "`#[server]` stands alone: names and the like belong to the methods",
        ));
    }
    let place = Error::new_spanned(
        item.clone().into_iter().next(),
        "`#[server]` goes above `impl Files { .. }`, whose methods are marked with `#[tool]` and the like",
    );
    let mut item: ItemImpl = syn::parse2(item).map_err(|_| place)?;
    if let Some((_, path, _)) = &item.trait_ {
        return Err(Error::new(
            path.span(),
            "`#[server]` goes above an impl of the type itself: only methods of its own can be marked",
        ));
    }
    let mut faults = Faults::default();
    let mut offers = Vec::new();
    let home = Place::Method { generic: !item.generics.params.is_empty() };
    let mut seen = Kind::ALL.map(|kind| (kind, Seen::new(kind.word())));
    for method in item.items.iter_mut().filter_map(as_method) {
        let Some(marked) = faults.note(Marked::take(method)).flatten() else { continue };
        let Some((function, offer)) = faults.note(marked.expand(home, method)) else { continue };
        for (kind, seen) in &mut seen {
            if *kind == function.kind {
                let name =
                    function.template.as_ref().map_or(function.name.clone(), |uri| uri.literal.value());
                faults.note(seen.add(&name, function.name_span));
            }
        }
        offers.push(offer);
    }
    let nothing =
        "nothing here is offered: mark methods with `#[tool]`, `#[prompt]` or `#[resource(\"..\")]`";
    let some = if offers.is_empty() { Err(Error::new(item.self_ty.span(), nothing)) } else { Ok(()) };
    if let Err(fault) = faults.done().and(some) {
        return Ok(refused::service(&item, &fault));
    }
    let self_ty = &item.self_ty;
    let mut generics = item.generics.clone();
    if !generics.params.is_empty() {
        // Asked where the service is given, when it is known what the parameters are.
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

/// The mark of a method.
struct Marked {
    kind: Kind,
    attribute: TokenStream,
}

impl Marked {
    /// Takes it from the method, if there is one.
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
            return Err(Error::new(second.span(), "a method is one thing: a tool, a prompt or a resource"));
        }
        let Some((kind, attr)) = marks.pop() else { return Ok(None) };
        let attribute = match attr.meta {
            Meta::Path(_) => TokenStream::new(),
            Meta::List(list) => list.tokens,
            Meta::NameValue(pair) => {
                let fault = format!("settings stand in parentheses: `#[{}(..)]`", kind.word());
                return Err(Error::new_spanned(pair.to_token_stream(), fault));
            }
        };
        Ok(Some(Self { kind, attribute }))
    }

    /// What it is, and the statement that offers it.
    fn expand(self, home: Place, method: &mut ImplItemFn) -> Result<(Function, TokenStream)> {
        let Self { kind, attribute } = self;
        let function = Function::read(kind, home, attribute, &method.attrs, &mut method.sig)?;
        let ident = &function.ident;
        let this = Ident::new("this", Span::mixed_site());
        let this = Some(&this).filter(|_| function.takes_self);
        let definition = definition(&function, &quote! { Self::#ident }, this);
        let made = made_type(kind);
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
