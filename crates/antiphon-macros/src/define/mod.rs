//! `#[tool]`, `#[prompt]` and `#[resource]` on functions, and `#[server]` on impls whose methods have these marks.
//!
//! `function` reads a signature into a model. It uses `settings` (the content of an attribute), `shown` (what lists
//! show), `call_settings` (questions and versions), `argument` (`#[arg(..)]`), `kind`, and `template` (the URI of a resource). `expand` writes the definition.
//! `service` puts the definition beside a function, or into an impl, and writes a replacement
//! if there is an error.

mod argument;
mod expand;
mod function;
mod kind;
mod settings;
mod shown;
mod template;

pub(crate) use crate::define::{expand_function as function, expand_service as service};
pub(crate) use kind::Kind;

use crate::errors::{Errors, UniqueNames};
use expand::{definition, definition_type};
use function::{Context, Function};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, FnArg, ImplItem, ImplItemFn, ItemFn, ItemImpl, Meta, Pat, Result, Signature, Token,
    Visibility, parse_quote, spanned::Spanned as _,
};

/// Returns the impl without its marks, and the impl of `Service`.
pub(crate) fn expand_service(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
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
        return Ok(service_with_error(&item, &fault));
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

/// Returns the function. Its future has the definition as a type parameter.
pub(crate) fn expand_function(kind: Kind, attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
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
        Err(fault) => return Ok(function_with_error(kind, &item, &fault)),
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

// The replacement of a function or an impl with an error, so that the compiler reports only that error.
//
// Without a replacement, every use of the function would be an error too, and the items in its body would be unused.
// An editor can also still analyse the body.

/// Returns the error, and a function of the same name without a definition. The function contains the written function
/// without the attributes of its parameters, which were already removed.
fn function_with_error(kind: Kind, item: &ItemFn, fault: &Error) -> TokenStream {
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
fn service_with_error(item: &ItemImpl, fault: &Error) -> TokenStream {
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
