//! One rule, which is a schema as far as decoding does not enforce it, and the compilation of schemas into rules.

use serde_json::{Number, Value};
use std::collections::HashMap;

/// The maximum nesting of a schema.
const MAX_DEPTH: usize = 64;

/// Compiles rules.
pub(crate) struct Compiler<'s> {
    schema: &'s Value,
    definitions: Definitions,
    place: Vec<String>,
}

impl<'s> Compiler<'s> {
    /// Compiles a schema: the rule of its root, and the definitions that rules refer to.
    pub(crate) fn compile(schema: &'s Value) -> Result<(Option<Rule>, Definitions), Uncovered> {
        let mut compiler = Self { schema, definitions: HashMap::new(), place: Vec::new() };
        let root = compiler.rule(schema, false)?;
        Ok((root, compiler.definitions))
    }

    fn uncovered(&self, keyword: &str) -> Uncovered {
        Uncovered { keyword: keyword.to_owned(), place: self.place.join("/") }
    }

    /// Compiles one schema. `None` if decoding enforces it; where `is_whole`, nothing is left to decoding, for the schema is
    /// one of several alternatives.
    fn rule(&mut self, schema: &'s Value, is_whole: bool) -> Result<Option<Rule>, Uncovered> {
        let members = match schema {
            Value::Bool(true) => return Ok(None),
            Value::Object(members) => members,
            _ => return Err(self.uncovered("false")),
        };
        if self.place.len() > MAX_DEPTH {
            return Err(self.uncovered("nesting"));
        }
        let mut rule = Rule::default();
        for (keyword, value) in members {
            self.place.push(keyword.clone());
            self.keyword(&mut rule, keyword, value, is_whole)?;
            self.place.pop();
        }
        if is_whole {
            let is_any = members.keys().all(|keyword| is_annotation(keyword));
            return Ok((!is_any).then_some(rule));
        }
        rule.required.clear();
        let format = members.get("format").and_then(Value::as_str);
        rule.leave_to_decoding(format.unwrap_or_default());
        Ok((!rule.is_enforced_by_decoding(self.place.is_empty())).then_some(rule))
    }

    fn keyword(
        &mut self,
        rule: &mut Rule,
        keyword: &str,
        value: &'s Value,
        is_whole: bool,
    ) -> Result<(), Uncovered> {
        match keyword {
            "type" => rule.types = Some(self.types(value)?),
            "enum" => rule.values = Some(self.values(value.as_array().map_or(&[], Vec::as_slice))?),
            "const" => rule.values = Some(self.values(std::slice::from_ref(value))?),
            "minimum" => rule.minimum = Some(self.bound(value, false)?),
            "maximum" => rule.maximum = Some(self.bound(value, false)?),
            "exclusiveMinimum" => rule.minimum = Some(self.bound(value, true)?),
            "exclusiveMaximum" => rule.maximum = Some(self.bound(value, true)?),
            "multipleOf" => rule.multiple_of = Some(self.size(value)?.max(1)),
            "minLength" => rule.length.least = Some(self.size(value)?),
            "maxLength" => rule.length.most = Some(self.size(value)?),
            "minItems" => rule.items.least = Some(self.size(value)?),
            "maxItems" => rule.items.most = Some(self.size(value)?),
            "minProperties" => rule.members.least = Some(self.size(value)?),
            "maxProperties" => rule.members.most = Some(self.size(value)?),
            "items" => rule.each_item = self.rule(value, is_whole)?.map(Box::new),
            "prefixItems" => rule.first_items = self.several(value, is_whole)?,
            "properties" => rule.properties = self.properties(value, is_whole)?,
            "required" => rule.required = self.names(value)?,
            "additionalProperties" => {
                rule.others = match value {
                    Value::Bool(false) => Others::Refused,
                    other => match self.rule(other, is_whole)? {
                        Some(rule) => Others::Keep(Box::new(rule)),
                        None => Others::Allowed,
                    },
                };
            }
            "$ref" => rule.reference = Some(self.reference(value)?),
            "allOf" => rule.all_of = self.several(value, is_whole)?.into_iter().flatten().collect(),
            // Which of them decoding takes is not known: each is checked as a whole.
            "anyOf" => rule.any_of = self.several(value, true)?,
            "oneOf" => rule.one_of = self.several(value, true)?,
            known if is_annotation(known) => {}
            _ => {
                self.place.pop();
                return Err(self.uncovered(keyword));
            }
        }
        Ok(())
    }

    fn types(&self, value: &Value) -> Result<Types, Uncovered> {
        let named = |value: &Value| value.as_str().and_then(Types::named);
        let all = match value {
            Value::Array(several) => several.iter().map(named).collect::<Option<Vec<_>>>(),
            one => named(one).map(|one| vec![one]),
        };
        let all = all.ok_or_else(|| self.uncovered("type"))?;
        Ok(Types(all.iter().fold(0, |bits, one| bits | one.0)))
    }

    fn values(&self, values: &[Value]) -> Result<Vec<Value>, Uncovered> {
        if values.iter().any(|value| value.is_array() || value.is_object()) {
            return Err(self.uncovered("enum"));
        }
        Ok(values.to_vec())
    }

    fn bound(&self, value: &Value, exclusive: bool) -> Result<Bound, Uncovered> {
        let Value::Number(number) = value else { return Err(self.uncovered("minimum")) };
        Ok(Bound { number: number.clone(), exclusive })
    }

    fn size(&self, value: &Value) -> Result<u64, Uncovered> {
        value.as_u64().ok_or_else(|| self.uncovered("a size"))
    }

    fn names(&self, value: &Value) -> Result<Vec<String>, Uncovered> {
        let names = value.as_array().into_iter().flatten().map(|name| name.as_str().map(str::to_owned));
        names.collect::<Option<_>>().ok_or_else(|| self.uncovered("required"))
    }

    fn several(&mut self, value: &'s Value, is_whole: bool) -> Result<Vec<Option<Rule>>, Uncovered> {
        let all = value.as_array().ok_or_else(|| self.uncovered("alternatives"))?;
        all.iter().map(|one| self.rule(one, is_whole)).collect()
    }

    fn properties(
        &mut self,
        value: &'s Value,
        is_whole: bool,
    ) -> Result<HashMap<String, Option<Rule>>, Uncovered> {
        let mut properties = HashMap::new();
        for (name, schema) in value.as_object().into_iter().flatten() {
            self.place.push(name.clone());
            properties.insert(name.clone(), self.rule(schema, is_whole)?);
            self.place.pop();
        }
        Ok(properties)
    }

    /// Compiles the definition that is referred to, if it is a new one: as a whole, for an alternative may refer to it too.
    fn reference(&mut self, value: &Value) -> Result<String, Uncovered> {
        let name = value.as_str().and_then(|path| path.strip_prefix("#/$defs/"));
        let name = name.filter(|name| !name.contains(['/', '~', '%']));
        let schema = self.schema;
        let found = name.and_then(|name| Some((name, schema.get("$defs")?.get(name)?)));
        let Some((name, definition)) = found else { return Err(self.uncovered("$ref")) };
        if !self.definitions.contains_key(name) {
            // In its place while it is compiled, for it may refer to itself.
            self.definitions.insert(name.to_owned(), None);
            let place = std::mem::replace(&mut self.place, vec!["$defs".to_owned(), name.to_owned()]);
            let rule = self.rule(definition, true)?;
            self.place = place;
            self.definitions.insert(name.to_owned(), rule);
        }
        Ok(name.to_owned())
    }
}

/// Returns whether a keyword says nothing about which values are valid.
fn is_annotation(keyword: &str) -> bool {
    let known = [
        "$schema",
        "$id",
        "$comment",
        "$defs",
        "title",
        "description",
        "default",
        "examples",
        "format",
        "deprecated",
        "readOnly",
        "writeOnly",
        "contentEncoding",
        "contentMediaType",
    ];
    known.contains(&keyword) || keyword.starts_with("x-")
}

// One rule: a schema as far as decoding does not enforce it.

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
    const NUMBER: Self = Self(8 | 4);
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
    fn leave_to_decoding(&mut self, format: &str) {
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
    fn is_enforced_by_decoding(&self, is_root: bool) -> bool {
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
