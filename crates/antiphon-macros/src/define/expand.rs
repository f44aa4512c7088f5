//! The definition as an expression, which runs when the server is built.

use super::{
    function::{Function, Param},
    kind::Kind,
};
use crate::resolver::{ResolvedParam, name_type};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

/// Returns a block whose value is a `Result` of the definition. `states` is in scope. `callee` is the path of the
/// function. `this` is, for methods, a variable with an `Arc` of the receiver.
pub(super) fn definition(function: &Function, callee: &TokenStream, this: Option<&Ident>) -> TokenStream {
    let Function { kind, name, setters, .. } = function;
    let user = format!("{} `{name}`", kind.with_article().replacen('a', "the", 1));
    let slots = function.arguments().rev().fold(quote! { () }, |rest, (_, argument)| {
        let variable = function.template.as_ref().and_then(|template| template.variable(&argument.name));
        let slot = argument.slot(variable.map_or_else(|| kind.slot(), |variable| variable.shape.slot()));
        quote! { (#slot, #rest) }
    });
    let values =
        function.arguments().rev().fold(quote! { () }, |rest, (variable, _)| quote! { (#variable, #rest) });
    let (states, types): (Vec<_>, Vec<_>) = function.states().unzip();
    let outcome = outcome(function);
    let resolver_code = resolver_code(function);
    let before = resolver_code.as_ref().map(|resolver_code| &resolver_code.before);
    let kept =
        states.iter().chain(this).chain(resolver_code.as_ref().map(|resolver_code| &resolver_code.kept));
    let kept = quote! { #(let #kept = ::core::clone::Clone::clone(&#kept);)* };
    // The variables have this crate's hygiene, because a parameter of the function may also be named `ctx`.
    let own = Span::mixed_site();
    let call = call(function, callee, this, resolver_code.as_ref());
    let (make, first) = maker(function);
    let completes = Ident::new("completes", own);
    let completions = function.arguments().filter_map(|(_, argument)| argument.completion(&user, &completes));
    let completes =
        this.map(|this| quote_spanned! { own => let #completes = ::core::clone::Clone::clone(&#this); });
    let completes = completes.filter(|_| function.has_method_completer());
    quote_spanned! { own => {
        #before
        #completes
        #(let #states = states.get::<#types>(#user)?;)*
        let outcome = #outcome;
        let made = #make(#first outcome, #slots, move |ctx, #values| {
            #kept
            #call
        })?;
        ::core::result::Result::Ok((made #setters #(#completions)*).into())
    } }
}

/// Returns the expression of the handler's outcome.
fn outcome(function: &Function) -> TokenStream {
    let Function { kind, output, .. } = function;
    let result = kind.result();
    let span = Span::mixed_site().located_at(function.output_span);
    quote_spanned! { span => ::antiphon::__expanded::outcome::<::antiphon::wire::#result, #output>() }
}

/// Returns the runtime function that creates the definition, and its first arguments.
fn maker(function: &Function) -> (TokenStream, TokenStream) {
    let name = &function.name;
    match (&function.template, function.kind) {
        (Some(template), _) => {
            let uri = &template.literal;
            let make = if template.variables.is_empty() {
                quote! { resource }
            } else {
                quote! { template }
            };
            (quote! { ::antiphon::__expanded::#make }, quote! { #uri, #name, })
        }
        (None, kind) => {
            let make = Ident::new(kind.name(), Span::mixed_site());
            let additional = &function.additional;
            (quote! { ::antiphon::__expanded::#make }, quote! { #name, #additional })
        }
    }
}

/// Returns the expression of the boxed future of one call.
fn call(
    function: &Function,
    callee: &TokenStream,
    this: Option<&Ident>,
    resolver_code: Option<&ResolverCode>,
) -> TokenStream {
    let passed = function.params.iter().enumerate().map(|(place, param)| {
        let variable = Function::variable(place);
        match param {
            Param::Ctx => quote_spanned! { Span::mixed_site() => &ctx },
            Param::Argument(argument) => argument.call_argument(&variable),
            Param::State(_) => quote! { #variable },
            Param::Resolved(taken) => taken.call_argument(&variable),
        }
    });
    let this = this.filter(|_| function.takes_self).map(|this| quote! { &#this, });
    let mut run = quote! { run };
    let mut handler = quote! { #callee(#this #(#passed),*) };
    if let Some(ResolverCode { statements, .. }) = resolver_code {
        run = quote! { run_resolved };
        handler = quote_spanned! { Span::mixed_site() => async {
            #statements
            ::core::result::Result::<_, ::antiphon::Error>::Ok(#handler.await)
        } };
    }
    // The compiler reports a future that is not `Send` at the name of the function.
    let span = Span::mixed_site().located_at(function.ident.span());
    quote_spanned! { span =>
        ::antiphon::__expanded::boxed(move || async move {
            ::antiphon::__expanded::#run(&ctx, outcome, ::core::pin::pin!(#handler)).await
        })
    }
}

/// Returns the type of a definition.
pub(super) fn definition_type(kind: Kind) -> TokenStream {
    match kind {
        Kind::Tool => quote! { ::antiphon::server::Tool },
        Kind::Prompt => quote! { ::antiphon::server::Prompt },
        Kind::Resource => quote! { ::antiphon::__expanded::AnyResource },
    }
}

/// The additional code of a definition with resolvers.
struct ResolverCode {
    /// The statements before the definition. `states` is in scope.
    pub(super) before: TokenStream,
    /// A variable of those statements, which is cloned for each call.
    pub(super) kept: Ident,
    /// The statements that set the variable of each resolved parameter. They are part of the handler's future, in a
    /// block that returns `Result<_, antiphon::Error>`. `ctx` and the variables of the arguments are in scope.
    statements: TokenStream,
}

/// Returns the code, or `None` if no parameter is resolved.
fn resolver_code(function: &Function) -> Option<ResolverCode> {
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
