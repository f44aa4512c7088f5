//! From the signature of a resolver to what it takes and gives.

use super::taken::Taken;
use crate::{
    define::{
        function::{check_ctx, has_ident, read_output, state_of},
        shape::{name_behind, ungrouped},
    },
    form::{Faults, Seen, plain},
};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    Error, FnArg, GenericParam, Ident, LitStr, Pat, PatType, Result, Signature, Token, Type,
    parse::ParseStream, parse::Parser as _, spanned::Spanned as _,
};

/// A resolver.
pub(super) struct Model {
    pub(super) ident: Ident,
    /// Its scope.
    pub(super) name: String,
    /// In order.
    pub(super) params: Vec<Param>,
    pub(super) output: Type,
    pub(super) output_span: Span,
}

/// Where a parameter comes from.
pub(super) enum Param {
    Ctx,
    /// The server: the `T` of its `State<T>`.
    State(Type),
    /// Another resolver.
    Taken(Taken),
    /// The tool.
    Argument(Argument),
}

/// An argument of the tool.
pub(super) struct Argument {
    pub(super) name: String,
    /// Without the `&` of what is lent.
    pub(super) ty: Type,
    pub(super) lent: bool,
}

impl Model {
    /// Reads it, and takes from its parameters the attributes that no compiler knows.
    pub(super) fn read(attribute: TokenStream, sig: &mut Signature) -> Result<Self> {
        let mut faults = Faults::default();
        faults.note(check_signature(sig));
        let name = faults.note(read_name(attribute, &sig.ident));
        let (mut params, mut seen) = (Vec::new(), Seen::new("argument"));
        for input in &mut sig.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    faults.note::<()>(Err(Error::new(
                        receiver.span(),
                        "a resolver is a function, no method: what it needs of the server is a `State<..>`",
                    )));
                }
                FnArg::Typed(typed) => {
                    let Some(param) = faults.note(Param::read(typed)) else { continue };
                    match &param {
                        Param::Argument(argument) => {
                            faults.note(seen.add(&argument.name, typed.pat.span()));
                        }
                        Param::Ctx if params.iter().any(|param| matches!(param, Param::Ctx)) => {
                            faults.note::<()>(Err(Error::new(typed.span(), "one `ctx: &Ctx` is enough")));
                        }
                        _ => {}
                    }
                    params.push(param);
                }
            }
        }
        let output = faults.note(read_output(sig));
        faults.done()?;
        let (Some(name), Some((output, output_span))) = (name, output) else {
            return Err(Error::new(sig.span(), "this cannot be read"));
        };
        Ok(Self { ident: sig.ident.clone(), name, params, output, output_span })
    }

    /// The resolvers before it, each with its place among the parameters.
    pub(super) fn taken(&self) -> impl DoubleEndedIterator<Item = (usize, &Taken)> {
        self.params.iter().enumerate().filter_map(|(place, param)| match param {
            Param::Taken(taken) => Some((place, taken)),
            _ => None,
        })
    }

    /// The arguments that it takes.
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
            format!("a resolver may wait, so it is asynchronous: `async fn {ident}`"),
        ));
    }
    match sig.generics.params.iter().find(|param| !matches!(param, GenericParam::Lifetime(_))) {
        Some(param) => Err(Error::new(
            param.span(),
            "a resolver is named without its types, so that nothing chooses one: write the type itself",
        )),
        None => Ok(()),
    }
}

/// The name that it has, or is given: a key, for it is a scope.
fn read_name(attribute: TokenStream, ident: &Ident) -> Result<String> {
    let parse = |input: ParseStream<'_>| {
        if input.is_empty() {
            return Ok(None);
        }
        let key: Ident = input.parse()?;
        if key != "name" {
            return Err(Error::new(
                key.span(),
                "a resolver has a name and nothing else: `#[resolver(name = \"confirm\")]`",
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
            "the name of a resolver stands before its keys, which clients see: 1 to 64 visible ASCII characters without \
             `#` and `/`; `#[resolver(name = \"..\")]` gives another",
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
            return Err(Error::new(
                arg.span(),
                "`#[arg(..)]` tells callers of an argument: it stands where the tool has it",
            ));
        }
        if let Some(taken) = Taken::read(&attrs, &typed.ty)? {
            return Ok(Self::Taken(taken));
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
                "the name of an argument of the tool stands here: take it apart in the body",
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
                "an argument is lent as a whole, `&T`, or copied as a whole, `T`: `&Option<String>`, for example",
            ));
        }
        if has_ident(tokens, "impl") {
            return Err(Error::new(ty.span(), "an argument has one type, the tool's: write the type itself"));
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
