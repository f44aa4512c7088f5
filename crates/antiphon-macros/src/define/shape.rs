//! The shape of an argument's type, as far as its name shows it. The macro rejects attributes that do not fit the
//! shape. A type with an unknown name may have every attribute, and the server checks the attributes against its schema
//! when the server is built.

use crate::types::{is_str, last, only_argument, ungrouped};
use syn::Type;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Whole { least: i128, most: i128 },
    Float,
    Bool,
    List,
    Unknown,
}

impl Shape {
    /// Returns the shape of a type, or of the type in its `Option`.
    pub(super) fn of(ty: &Type) -> Self {
        if is_str(ty) {
            return Self::Text;
        }
        let Some(segment) = last(ty) else {
            return if matches!(ungrouped(ty), Type::Array(_)) { Self::List } else { Self::Unknown };
        };
        if let Some(inner) = only_argument(segment, "Option") {
            return Self::of(inner);
        }
        macro_rules! whole {
            ($($name:ident)*) => {
                match segment.ident.to_string().as_str() {
                    $(stringify!($name) => Self::Whole { least: $name::MIN as i128, most: $name::MAX as i128 },)*
                    // The size depends on the server's machine, which clients do not know.
                    "usize" => Self::Whole { least: 0, most: u64::MAX as i128 },
                    "isize" => Self::Whole { least: i64::MIN as i128, most: i64::MAX as i128 },
                    "String" => Self::Text,
                    "f32" | "f64" => Self::Float,
                    "bool" => Self::Bool,
                    "Vec" | "HashSet" | "BTreeSet" | "VecDeque" => Self::List,
                    _ => Self::Unknown,
                }
            };
        }
        whole!(u8 u16 u32 u64 i8 i16 i32 i64)
    }

    /// Returns the name with an article, for messages.
    pub(super) fn with_article(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Whole { .. } => "a whole number",
            Self::Float => "a number",
            Self::Bool => "a boolean",
            Self::List => "a list",
            Self::Unknown => "an argument",
        }
    }
}
