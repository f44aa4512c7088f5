//! The shape of a field's type in a form. A type is known by the last segment of its path.

use crate::errors::{last, ungrouped};
use syn::{Error, GenericArgument, PathArguments, Result, Type, spanned::Spanned as _};

pub(super) enum Shape {
    Text,
    Whole(Whole),
    Float {
        single: bool,
    },
    Bool,
    /// Any other path, which must be an enum.
    One(Type),
    Many(Type),
}

/// A type of whole numbers.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    pub(super) name: &'static str,
    pub(super) least: i128,
    pub(super) most: i128,
}

impl Whole {
    const ALL: [Self; 10] = [
        Self { name: "u8", least: 0, most: u8::MAX as i128 },
        Self { name: "u16", least: 0, most: u16::MAX as i128 },
        Self { name: "u32", least: 0, most: u32::MAX as i128 },
        Self { name: "u64", least: 0, most: u64::MAX as i128 },
        Self { name: "usize", least: 0, most: u64::MAX as i128 },
        Self { name: "i8", least: i8::MIN as i128, most: i8::MAX as i128 },
        Self { name: "i16", least: i16::MIN as i128, most: i16::MAX as i128 },
        Self { name: "i32", least: i32::MIN as i128, most: i32::MAX as i128 },
        Self { name: "i64", least: i64::MIN as i128, most: i64::MAX as i128 },
        Self { name: "isize", least: i64::MIN as i128, most: i64::MAX as i128 },
    ];

    /// Returns the bounds of a field without `min` and `max`. Bounds of more than 32 bits are left out, because clients
    /// in JavaScript would round them.
    pub(super) fn form_bounds(self) -> (Option<i128>, Option<i128>) {
        let exact = |bound: i128| (bound.abs() <= i128::from(u32::MAX)).then_some(bound);
        (exact(self.least), exact(self.most))
    }
}

impl Shape {
    /// Returns the name with an article, for messages.
    pub(super) fn with_article(&self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Whole(_) | Self::Float { .. } => "a number",
            Self::Bool => "a bool",
            Self::One(_) => "a choice",
            Self::Many(_) => "a list of choices",
        }
    }

    /// Returns the attributes that the field may have.
    pub(super) fn attributes(&self) -> &'static [&'static str] {
        match self {
            Self::Text => {
                &["title", "description", "default", "min_length", "max_length", "format", "not_secret"]
            }
            Self::Whole(_) | Self::Float { .. } => {
                &["title", "description", "default", "min", "max", "not_secret"]
            }
            Self::Bool | Self::One(_) => &["title", "description", "default", "not_secret"],
            Self::Many(_) => &["title", "description", "default", "min_items", "max_items", "not_secret"],
        }
    }

    /// Reads the shape of a type. The flag is true if the field is optional.
    pub(super) fn read(ty: &Type) -> Result<(Self, bool)> {
        match argument_of(ty, "Option")? {
            Some(inner) if last(inner).is_some_and(|segment| segment.ident == "Option") => {
                Err(Error::new(ty.span(), "a field can have one `Option` only"))
            }
            Some(inner) => Ok((Self::of(inner)?, true)),
            None => Ok((Self::of(ty)?, false)),
        }
    }

    fn of(ty: &Type) -> Result<Self> {
        if let Some(item) = argument_of(ty, "Vec")? {
            return match Self::of(item) {
                Ok(Self::One(choice)) => Ok(Self::Many(choice)),
                _ => Err(Error::new(
                    item.span(),
                    "a list in a form must contain choices: an enum without data that derives `antiphon::Form`; use \
                     an argument of the tool or several questions for other lists",
                )),
            };
        }
        let ty = ungrouped(ty);
        let Some(segment) = last(ty) else { return Err(nested(ty)) };
        let name = segment.ident.to_string();
        if let Some(whole) = Whole::ALL.into_iter().find(|whole| whole.name == name) {
            return Ok(Self::Whole(whole));
        }
        match name.as_str() {
            "String" => Ok(Self::Text),
            "f32" | "f64" => Ok(Self::Float { single: name == "f32" }),
            "bool" => Ok(Self::Bool),
            "u128" | "i128" => Err(Error::new(
                ty.span(),
                format!("JSON has no number for `{name}`: use `i64`, `u64` or String"),
            )),
            "char" | "str" => Err(Error::new(
                ty.span(),
                "the type of a text must be String: `max_length = 1` limits it to one character",
            )),
            _ if matches!(segment.arguments, PathArguments::None) => Ok(Self::One(ty.clone())),
            _ => Err(nested(ty)),
        }
    }
}

fn nested(ty: &Type) -> Error {
    Error::new(
        ty.span(),
        "the type of a field must be String, a number, bool, an enum without data that derives `antiphon::Form`, a Vec of \
         such an enum, or an Option of one of these; use an argument of the tool or several questions for nested data",
    )
}

/// Returns the `T` if the type is, for example, `Option<T>`.
fn argument_of<'t>(ty: &'t Type, outer: &str) -> Result<Option<&'t Type>> {
    let Some(segment) = last(ty).filter(|segment| segment.ident == outer) else { return Ok(None) };
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) if arguments.args.len() == 1 => match arguments.args.first()
        {
            Some(GenericArgument::Type(inner)) => Ok(Some(inner)),
            _ => Err(nested(ty)),
        },
        _ => Err(nested(ty)),
    }
}
