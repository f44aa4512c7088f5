//! Errors of one macro call, which the compiler reports together, and the check that each name is there once; and the rules
//! for the signatures of marked functions and of resolvers: the result, the context, a state.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    Error, GenericArgument, PathArguments, PathSegment, Result, ReturnType, Signature, Type,
    ext::IdentExt as _, spanned::Spanned as _,
};

/// A collection of errors, which the compiler reports together.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Returns the value, or adds the error and returns `None`.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        let fault = match result {
            Ok(value) => return Some(value),
            Err(fault) => fault,
        };
        match &mut self.0 {
            Some(first) => first.combine(fault),
            None => self.0 = Some(fault),
        }
        None
    }

    pub(crate) fn done(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The names that are in use.
pub(crate) struct UniqueNames {
    what: &'static str,
    names: Vec<String>,
}

impl UniqueNames {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, names: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &str, span: Span) -> Result<()> {
        if self.names.iter().any(|seen| seen == name) {
            return Err(Error::new(span, format!("another {} has the name `{name}`", self.what)));
        }
        self.names.push(name.to_owned());
        Ok(())
    }
}

/// Returns the name of an identifier as serde reads it, without `r#`.
pub(crate) fn plain(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Returns the type of the result, and its span.
pub(crate) fn read_output(sig: &Signature) -> Result<(Type, Span)> {
    let ReturnType::Type(_, output) = &sig.output else {
        return Ok((syn::parse_quote!(()), sig.ident.span()));
    };
    let span = output.span();
    match ungrouped(output) {
        Type::Reference(reference)
            if reference.lifetime.as_ref().is_none_or(|life| life.ident != "static") =>
        {
            return Err(Error::new(
                span,
                "the result outlives the call: return an owned type, such as String",
            ));
        }
        _ => {}
    }
    if has_ident(output.to_token_stream(), "impl") {
        return Err(Error::new(span, "the return type cannot be `impl ..`: write a concrete type"));
    }
    Ok(((**output).clone(), span))
}

/// Checks the type of the context.
pub(crate) fn check_ctx(ty: &Type) -> Result<()> {
    match ungrouped(ty) {
        Type::Reference(reference)
            if reference.mutability.is_none()
                && !matches!(ungrouped(&reference.elem), Type::Reference(_)) =>
        {
            Ok(())
        }
        _ => Err(Error::new(ty.span(), "the context is a shared reference: `ctx: &Ctx`")),
    }
}

/// Returns the `T` of `State<T>`.
pub(crate) fn state_of(ty: &Type) -> Result<Option<Type>> {
    let inner = |ty: &Type| -> Option<Type> {
        let segment = last(ty)?;
        only_argument(segment, "State").or_else(|| only_argument(segment, "SharedState")).cloned()
    };
    match ungrouped(ty) {
        Type::Reference(reference) if inner(&reference.elem).is_some() => Err(Error::new(
            ty.span(),
            "state is taken by value, without `&`: a clone is cheap, and all clones share the value",
        )),
        ty => Ok(inner(ty)),
    }
}

/// Returns `true` if the tokens have this word, at any depth.
pub(crate) fn has_ident(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => has_ident(group.stream(), word),
        _ => false,
    })
}

// Types as they are written: their last segment, their argument, the type behind a reference.

/// Returns `true` for `&str`, with any lifetime.
pub(crate) fn is_str(ty: &Type) -> bool {
    match ungrouped(ty) {
        Type::Reference(reference) if reference.mutability.is_none() => {
            matches!(ungrouped(&reference.elem), Type::Path(path) if path.path.is_ident("str"))
        }
        _ => false,
    }
}

/// Returns the last segment of the type's path.
pub(crate) fn last(ty: &Type) -> Option<&PathSegment> {
    match ungrouped(ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        _ => None,
    }
}

/// Returns the `T` if the segment is, for example, `State<T>`.
pub(crate) fn only_argument<'t>(segment: &'t PathSegment, name: &str) -> Option<&'t Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) if segment.ident == name && arguments.args.len() == 1 => Some(inner),
        _ => None,
    }
}

/// Returns the name of the type without its references.
pub(crate) fn name_behind(ty: &Type) -> Option<&Ident> {
    match ungrouped(ty) {
        Type::Reference(reference) => name_behind(&reference.elem),
        ty => last(ty).map(|segment| &segment.ident),
    }
}

/// Returns the type that a macro's substitution wraps.
pub(crate) fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        ty => ty,
    }
}
