//! Types as they are written: their last segment, their argument, the type behind a reference.

use proc_macro2::Ident;
use syn::{GenericArgument, PathArguments, PathSegment, Type};

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
