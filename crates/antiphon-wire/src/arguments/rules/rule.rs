//! One rule: a schema as far as decoding does not enforce it.

use serde_json::{Number, Value};
use std::collections::HashMap;

/// The part of a schema that is checked neither by decoding nor here.
#[derive(Debug, PartialEq, Eq)]
pub struct Uncovered {
    /// The keyword.
    pub keyword: String,
    /// The place in the schema, such as `properties/name`.
    pub place: String,
}

/// The definitions that rules refer to, by their names in `$defs`.
pub(crate) type Definitions = HashMap<String, Option<Rule>>;

/// One schema, as far as decoding does not enforce it.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    pub(crate) types: Option<Types>,
    /// The only values, if they are fixed.
    pub(crate) values: Option<Vec<Value>>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<u64>,
    pub(crate) length: Sizes,
    pub(crate) items: Sizes,
    pub(crate) members: Sizes,
    pub(crate) each_item: Option<Box<Rule>>,
    pub(crate) first_items: Vec<Option<Rule>>,
    pub(crate) properties: HashMap<String, Option<Rule>>,
    pub(crate) required: Vec<String>,
    pub(crate) others: Others,
    pub(crate) reference: Option<String>,
    pub(crate) all_of: Vec<Rule>,
    pub(crate) any_of: Vec<Option<Rule>>,
    pub(crate) one_of: Vec<Option<Rule>>,
}

/// A smallest and a largest size, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) least: Option<u64>,
    pub(crate) most: Option<u64>,
}

/// A bound of a number.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) number: Number,
    /// The bound itself is outside.
    pub(crate) exclusive: bool,
}

/// Members that `properties` does not name.
#[derive(Debug, Default)]
pub(crate) enum Others {
    #[default]
    Allowed,
    Refused,
    Keep(Box<Rule>),
}

/// The JSON types that a value may have, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types(pub(crate) u8);

impl Types {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    pub(crate) const NUMBER: Self = Self(8 | 4);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);

    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    pub(crate) fn has(self, one: Self) -> bool {
        self.0 & one.0 == one.0
    }

    pub(crate) fn names(self) -> String {
        let all = [
            ("null", Self::NULL),
            ("a boolean", Self::BOOLEAN),
            ("a number", Self::NUMBER),
            ("a whole number", Self::INTEGER),
            ("a string", Self::STRING),
            ("an array", Self::ARRAY),
            ("an object", Self::OBJECT),
        ];
        let mut left = self;
        let mut names = Vec::new();
        for (name, one) in all {
            if left.has(one) {
                left.0 &= !one.0;
                names.push(name);
            }
        }
        names.join(" or ")
    }
}

impl Rule {
    /// Drops the bounds that every value of a Rust integer keeps.
    pub(crate) fn leave_to_decoding(&mut self, format: &str) {
        let (least, most) = match format {
            "uint8" => (0, Some(i64::from(u8::MAX))),
            "uint16" => (0, Some(i64::from(u16::MAX))),
            "uint" | "uint32" | "uint64" => (0, None),
            "int8" => (i64::from(i8::MIN), Some(i64::from(i8::MAX))),
            "int16" => (i64::from(i16::MIN), Some(i64::from(i16::MAX))),
            _ => return,
        };
        let is = |bound: &Bound, number| !bound.exclusive && bound.number.as_i64() == Some(number);
        self.minimum.take_if(|bound| is(bound, least));
        self.maximum.take_if(|bound| most.is_some_and(|most| is(bound, most)));
    }

    /// Returns whether a type that has this schema decodes nothing that breaks it. The root is an object, or is not decoded.
    pub(crate) fn is_enforced_by_decoding(&self, is_root: bool) -> bool {
        let is_plain = self.values.is_none()
            && self.minimum.is_none()
            && self.maximum.is_none()
            && self.multiple_of.is_none()
            && [self.length, self.items, self.members].iter().all(|sizes| *sizes == Sizes::default())
            && self.each_item.is_none()
            && self.first_items.iter().all(Option::is_none)
            && self.properties.values().all(Option::is_none)
            && matches!(self.others, Others::Allowed)
            && self.reference.is_none()
            && self.all_of.is_empty()
            && self.any_of.is_empty()
            && self.one_of.is_empty();
        is_plain && (is_root || self.types.is_none_or(|types| !types.has(Types::OBJECT)))
    }

    pub(crate) fn has_alternatives(&self) -> bool {
        let lists = [self.any_of.is_empty(), self.one_of.is_empty(), self.all_of.is_empty()];
        self.reference.is_some() || lists.contains(&false)
    }
}
