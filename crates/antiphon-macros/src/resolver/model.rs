//! The model of a resolver, read from its signature.

use crate::errors::{
    Errors, UniqueNames, check_ctx, has_ident, is_str, name_behind, plain, read_output, state_of, ungrouped,
};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, FnArg, GenericParam, LitStr, Pat, PatType, Path, Result, Signature, Token, Type,
    parse::{ParseStream, Parser as _},
    parse_quote,
    spanned::Spanned as _,
};

/// A resolver.
pub(super) struct Model {
    pub(super) ident: Ident,
    /// The name, which is the scope of the resolver's keys.
    pub(super) name: String,
    /// The parameters, in order.
    pub(super) params: Vec<Param>,
    pub(super) output: Type,
    pub(super) output_span: Span,
}

/// A parameter, by the source of its value.
pub(super) enum Param {
    Ctx,
    /// A value of the server: the `T` of `State<T>`.
    State(Type),
    /// The value of another resolver.
    Resolved(ResolvedParam),
    /// An argument of the tool.
    Argument(Argument),
}

/// An argument of the tool.
pub(super) struct Argument {
    pub(super) name: String,
    /// The type without the `&` of a borrowed argument.
    pub(super) ty: Type,
    pub(super) lent: bool,
}

impl Model {
    /// Reads a signature, and removes the attributes of its parameters that the compiler does not know.
    pub(super) fn read(attribute: TokenStream, sig: &mut Signature) -> Result<Self> {
        let mut errors = Errors::default();
        errors.note(check_signature(sig));
        let name = errors.note(read_name(attribute, &sig.ident));
        let (mut params, mut seen) = (Vec::new(), UniqueNames::new("argument"));
        for input in &mut sig.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    errors.note::<()>(Err(Error::new(
                        receiver.span(),
                        "a resolver cannot be a method: take a `State<..>` for values of the server",
                    )));
                }
                FnArg::Typed(typed) => {
                    let Some(param) = errors.note(Param::read(typed)) else { continue };
                    match &param {
                        Param::Argument(argument) => {
                            errors.note(seen.add(&argument.name, typed.pat.span()));
                        }
                        Param::Ctx if params.iter().any(|param| matches!(param, Param::Ctx)) => {
                            errors.note::<()>(Err(Error::new(
                                typed.span(),
                                "a function has at most one `ctx: &Ctx`: remove this one",
                            )));
                        }
                        _ => {}
                    }
                    params.push(param);
                }
            }
        }
        let output = errors.note(read_output(sig));
        errors.done()?;
        let (Some(name), Some((output, output_span))) = (name, output) else {
            return Err(Error::new(sig.span(), "this signature cannot be read"));
        };
        Ok(Self { ident: sig.ident.clone(), name, params, output, output_span })
    }

    /// Returns the parameters from other resolvers, each with its index.
    pub(super) fn taken(&self) -> impl DoubleEndedIterator<Item = (usize, &ResolvedParam)> {
        self.params.iter().enumerate().filter_map(|(place, param)| match param {
            Param::Resolved(taken) => Some((place, taken)),
            _ => None,
        })
    }

    /// Returns the arguments of the tool that the resolver takes.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.params.iter().filter_map(|param| match param {
            Param::Argument(argument) => Some(argument),
            _ => None,
        })
    }
}

fn check_signature(sig: &Signature) -> Result<()> {
    if sig.asyncness.is_none() {
        let ident = &sig.ident;
        return Err(Error::new(
            sig.fn_token.span,
            format!("a resolver must be asynchronous: `async fn {ident}`"),
        ));
    }
    match sig.generics.params.iter().find(|param| !matches!(param, GenericParam::Lifetime(_))) {
        Some(param) => {
            Err(Error::new(param.span(), "a resolver cannot have type parameters: write a concrete type"))
        }
        None => Ok(()),
    }
}

/// Reads the name, which must be a valid key, because it is a scope. Without a setting it is the function's name.
fn read_name(attribute: TokenStream, ident: &Ident) -> Result<String> {
    let parse = |input: ParseStream<'_>| {
        if input.is_empty() {
            return Ok(None);
        }
        let key: Ident = input.parse()?;
        if key != "name" {
            return Err(Error::new(
                key.span(),
                "a resolver has only the setting `name`: `#[resolver(name = \"confirm\")]`",
            ));
        }
        input.parse::<Token![=]>()?;
        let name: LitStr = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Some(name))
    };
    let given = parse.parse2(attribute)?;
    let (name, span) = match given {
        Some(name) => (name.value(), name.span()),
        None => (plain(ident), ident.span()),
    };
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'#' && byte != b'/';
    if !(1..=64).contains(&name.len()) || !name.bytes().all(fits) {
        return Err(Error::new(
            span,
            "the name of a resolver is a prefix of its keys: it must have 1 to 64 visible ASCII characters without \
             `#` and `/`; `#[resolver(name = \"..\")]` sets another name",
        ));
    }
    Ok(name)
}

impl Param {
    fn read(typed: &mut PatType) -> Result<Self> {
        let attrs = std::mem::take(&mut typed.attrs);
        let is_ours = |name: &str| ["doc", "arg", "resolve"].contains(&name);
        typed.attrs = attrs
            .iter()
            .filter(|attr| !attr.path().get_ident().is_some_and(|ident| is_ours(&ident.to_string())))
            .cloned()
            .collect();
        if let Some(arg) = attrs.iter().find(|attr| attr.path().is_ident("arg")) {
            return Err(Error::new(arg.span(), "`#[arg(..)]` belongs to the parameter of the tool"));
        }
        if let Some(taken) = ResolvedParam::read(&attrs, &typed.ty)? {
            return Ok(Self::Resolved(taken));
        }
        if name_behind(&typed.ty).is_some_and(|name| name == "Ctx") {
            return check_ctx(&typed.ty).map(|()| Self::Ctx);
        }
        if let Some(state) = state_of(&typed.ty)? {
            return Ok(Self::State(state));
        }
        match &*typed.pat {
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
                Argument::read(&pat.ident, &typed.ty).map(Self::Argument)
            }
            pat => Err(Error::new(
                pat.span(),
                "the parameter must have the name of an argument of the tool: destructure the value in the body",
            )),
        }
    }
}

impl Argument {
    fn read(ident: &Ident, ty: &Type) -> Result<Self> {
        let (inner, lent) = match ungrouped(ty) {
            Type::Reference(reference) if reference.mutability.is_none() => (&*reference.elem, true),
            ty => (ty, false),
        };
        let tokens = inner.to_token_stream();
        if has_reference(tokens.clone()) {
            return Err(Error::new(
                ty.span(),
                "an argument is taken as `&T` or as a copy `T`: for example `&Option<String>`",
            ));
        }
        if has_ident(tokens, "impl") {
            return Err(Error::new(
                ty.span(),
                "an argument cannot be `impl ..`: write the type of the tool's argument",
            ));
        }
        Ok(Self { name: plain(ident), ty: inner.clone(), lent })
    }
}

fn has_reference(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == '&',
        TokenTree::Group(group) => has_reference(group.stream()),
        _ => false,
    })
}

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
