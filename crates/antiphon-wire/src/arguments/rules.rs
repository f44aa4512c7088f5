//! The rules that arguments must keep besides those that decoding enforces.
//!
//! The schema and the decoder of a typed tool come from the same type. Decoding refuses most of what the schema forbids: a
//! number in the place of a text, a member that is missing, a variant that does not exist. The rest is checked here, on the
//! text of the arguments, without a [`Value`] in between:
//!
//! - bounds of numbers, lengths of texts and arrays, fixed values;
//! - arrays in the place of objects, and objects in the place of names, both of which serde takes;
//! - members that are not allowed.
//!
//! A [`Rule`] is compiled once from the schema. A part of the schema that decoding enforces alone is no rule at all, so that a
//! tool that takes plain texts and numbers is checked by decoding only. A schema with a keyword that is not known here is
//! [`Uncovered`]: its tool needs the validator.

mod compile;

pub use compile::Uncovered;

use crate::escaped;
use compile::{Bound, Compiler, Definitions, Others, Rule, Sizes, Types};
use serde::{
    Deserialize as _,
    de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value, value::RawValue};
use std::{borrow::Cow, fmt};

/// The rules of one tool's arguments.
#[derive(Debug)]
pub struct Rules {
    /// `None`: decoding alone decides.
    root: Option<Rule>,
    definitions: Definitions,
}

impl Rules {
    /// Compiles the schema of a type that decodes the arguments.
    ///
    /// # Errors
    /// If the schema holds a keyword that is not covered.
    pub fn of(schema: &Value) -> Result<Self, Uncovered> {
        let (root, definitions) = Compiler::compile(schema)?;
        Ok(Self { root, definitions })
    }

    /// Returns the first rule that the arguments break, in words; `None` if they keep all of them.
    #[must_use]
    pub fn fault(&self, text: &str) -> Option<String> {
        let root = self.root.as_ref()?;
        Check::fault(&self.definitions, text, root)
    }
}

/// The maximum number of bytes that are read in one check: alternatives are tried one by one, and within alternatives again.
const MAX_READ: usize = 32 * 1024 * 1024;

/// One check of some arguments.
pub(crate) struct Check<'r> {
    definitions: &'r Definitions,
    /// The number of bytes that may still be read.
    left: usize,
    is_spent: bool,
    fault: Option<String>,
    /// The names and numbers of the members that lead to the fault, the innermost first.
    path: Vec<String>,
}

impl<'r> Check<'r> {
    /// Returns the first rule that the arguments break, in words.
    pub(crate) fn fault(definitions: &'r Definitions, text: &str, root: &'r Rule) -> Option<String> {
        let mut check = Check { definitions, left: MAX_READ, is_spent: false, fault: None, path: Vec::new() };
        let error = check.text(text, Some(root)).err()?;
        if check.is_spent {
            return Some("the arguments are too costly to check".to_owned());
        }
        let fault = check.fault.unwrap_or_else(|| error.to_string());
        if check.path.is_empty() {
            return Some(fault);
        }
        check.path.reverse();
        Some(format!("{}: {fault}", check.path.join("/")))
    }

    fn text(&mut self, text: &str, rule: Option<&'r Rule>) -> serde_json::Result<()> {
        let Some(left) = self.left.checked_sub(text.len()) else {
            self.is_spent = true;
            return Err(serde_json::Error::custom("too costly"));
        };
        self.left = left;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Place { check: self, rule }.read(&mut deserializer)?;
        deserializer.end()
    }

    /// Checks a value whose rule needs its whole text more than once.
    fn alternatives(&mut self, text: &str, rule: &'r Rule) -> serde_json::Result<()> {
        serde_json::Deserializer::from_str(text).deserialize_any(Plain { check: self, rule })?;
        if let Some(name) = &rule.reference {
            let definition = self.definitions.get(name).and_then(Option::as_ref);
            self.text(text, definition)?;
        }
        for all in &rule.all_of {
            self.text(text, Some(all))?;
        }
        for (alternatives, is_one) in [(&rule.any_of, false), (&rule.one_of, true)] {
            if alternatives.is_empty() {
                continue;
            }
            let mut fitting = 0_usize;
            for alternative in alternatives {
                let path = self.path.len();
                match self.text(text, alternative.as_ref()) {
                    Ok(()) => fitting += 1,
                    Err(fault) if self.is_spent => return Err(fault),
                    Err(_) => {
                        self.fault = None;
                        self.path.truncate(path);
                    }
                }
            }
            let fits = if is_one { fitting == 1 } else { fitting > 0 };
            if !fits {
                let text = match alternatives.iter().flatten().filter_map(|one| one.values.as_ref()).flatten()
                {
                    values if alternatives.len() > 1 => one_of_these(values),
                    _ => None,
                };
                self.fault = Some(text.unwrap_or_else(|| "fits none of the alternatives".to_owned()));
                return Err(serde_json::Error::custom("no alternative"));
            }
        }
        Ok(())
    }
}

fn one_of_these<'v>(values: impl Iterator<Item = &'v Value>) -> Option<String> {
    let values: Vec<String> = values.map(Value::to_string).collect();
    (!values.is_empty()).then(|| format!("must be one of {}", values.join(", ")))
}

/// A value that is checked.
struct Place<'c, 'r> {
    check: &'c mut Check<'r>,
    rule: Option<&'r Rule>,
}

impl<'r> Place<'_, 'r> {
    fn read<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Some(rule) = self.rule else {
            return IgnoredAny::deserialize(deserializer).map(drop);
        };
        if !rule.has_alternatives() {
            return deserializer.deserialize_any(Plain { check: self.check, rule });
        }
        let text = <&RawValue>::deserialize(deserializer)?.get();
        self.check.alternatives(text, rule).map_err(D::Error::custom)
    }
}

/// The seed of a member: where reading fails, the path of the fault is noted.
impl<'de, 'r> DeserializeSeed<'de> for Place<'_, 'r> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.read(deserializer)
    }
}

fn refuse<E: serde::de::Error>(check: &mut Check<'_>, fault: String) -> E {
    let error = E::custom(&fault);
    check.fault.get_or_insert(fault);
    error
}

/// A value, and the part of its rule that is checked while it is read.
struct Plain<'c, 'r> {
    check: &'c mut Check<'r>,
    rule: &'r Rule,
}

impl<'r> Plain<'_, 'r> {
    fn is<E: serde::de::Error>(&mut self, one: Types) -> Result<(), E> {
        match self.rule.types {
            Some(types) if !types.has(one) => Err(refuse(self.check, format!("must be {}", types.names()))),
            _ => Ok(()),
        }
    }

    fn is_value<E: serde::de::Error>(&mut self, is_it: impl Fn(&Value) -> bool) -> Result<(), E> {
        match &self.rule.values {
            Some(values) if !values.iter().any(is_it) => {
                let text = one_of_these(values.iter()).unwrap_or_else(|| "is not allowed".to_owned());
                Err(refuse(self.check, text))
            }
            _ => Ok(()),
        }
    }

    fn has_size<E: serde::de::Error>(&mut self, sizes: Sizes, size: u64, unit: &str) -> Result<(), E> {
        let (most, least) = (sizes.most.unwrap_or(u64::MAX), sizes.least.unwrap_or(0));
        if size < least {
            return Err(refuse(self.check, format!("must have at least {least} {unit}")));
        }
        if size > most {
            return Err(refuse(self.check, format!("must have at most {most} {unit}")));
        }
        Ok(())
    }

    fn number<E: serde::de::Error>(mut self, number: &Number) -> Result<(), E> {
        let is_whole = number.as_f64().is_none_or(|number| number.fract() == 0.0);
        self.is(if is_whole { Types::INTEGER } else { Types(8) })?;
        self.is_value(|value| matches!(value, Value::Number(one) if order(one, number).is_eq()))?;
        let rule = self.rule;
        if let Some(Bound { number: bound, exclusive }) = &rule.minimum {
            let order = order(number, bound);
            if order.is_lt() || *exclusive && order.is_eq() {
                let more = if *exclusive { "more than" } else { "at least" };
                return Err(refuse(self.check, format!("must be {more} {bound}")));
            }
        }
        if let Some(Bound { number: bound, exclusive }) = &rule.maximum {
            let order = order(number, bound);
            if order.is_gt() || *exclusive && order.is_eq() {
                let less = if *exclusive { "less than" } else { "at most" };
                return Err(refuse(self.check, format!("must be {less} {bound}")));
            }
        }
        match rule.multiple_of {
            Some(step) if !is_multiple(number, step) => {
                Err(refuse(self.check, format!("must be a multiple of {step}")))
            }
            _ => Ok(()),
        }
    }
}

/// Compares two numbers: exactly where both are whole, else as floating point numbers.
fn order(one: &Number, other: &Number) -> std::cmp::Ordering {
    let whole = |number: &Number| {
        let unsigned = number.as_u64().map(i128::from);
        unsigned.or_else(|| number.as_i64().map(i128::from))
    };
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        // JSON has no NaN.
        _ => {
            let (one, other) = (one.as_f64().unwrap_or_default(), other.as_f64().unwrap_or_default());
            one.total_cmp(&other)
        }
    }
}

fn is_multiple(number: &Number, step: u64) -> bool {
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(number), ..) => number % step == 0,
        (_, Some(number), _) => number.unsigned_abs() % step == 0,
        #[expect(clippy::cast_precision_loss, reason = "the number is a float already")]
        (.., Some(number)) => number % step as f64 == 0.0,
        _ => false,
    }
}

impl<'de> Visitor<'de> for Plain<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(mut self) -> Result<(), E> {
        self.is(Types::NULL)?;
        self.is_value(Value::is_null)
    }

    fn visit_bool<E: serde::de::Error>(mut self, read: bool) -> Result<(), E> {
        self.is(Types::BOOLEAN)?;
        self.is_value(|value| value.as_bool() == Some(read))
    }

    fn visit_u64<E: serde::de::Error>(self, read: u64) -> Result<(), E> {
        self.number(&read.into())
    }

    fn visit_i64<E: serde::de::Error>(self, read: i64) -> Result<(), E> {
        self.number(&read.into())
    }

    fn visit_f64<E: serde::de::Error>(self, read: f64) -> Result<(), E> {
        match Number::from_f64(read) {
            Some(number) => self.number(&number),
            None => Err(refuse(self.check, "is no number of JSON".to_owned())),
        }
    }

    fn visit_str<E: serde::de::Error>(mut self, read: &str) -> Result<(), E> {
        self.is(Types::STRING)?;
        self.is_value(|value| value.as_str() == Some(read))?;
        let sizes = self.rule.length;
        if sizes == Sizes::default() {
            return Ok(());
        }
        self.has_size(sizes, read.chars().count() as u64, "characters")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<(), A::Error> {
        self.is(Types::ARRAY)?;
        let rule = self.rule;
        let mut count = 0_usize;
        loop {
            let item = rule.first_items.get(count).map_or(rule.each_item.as_deref(), Option::as_ref);
            let read = sequence.next_element_seed(Place { check: self.check, rule: item });
            match read {
                Ok(Some(())) => count += 1,
                Ok(None) => break,
                Err(fault) => {
                    self.check.path.push(count.to_string());
                    return Err(fault);
                }
            }
        }
        self.is_value(|_| false)?;
        self.has_size(rule.items, count as u64, "items")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.is(Types::OBJECT)?;
        let rule = self.rule;
        let (mut count, mut required) = (0, 0);
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            count += 1;
            required += usize::from(rule.required.iter().any(|needed| *needed == *name));
            let member = match (rule.properties.get(&*name), &rule.others) {
                (Some(member), _) => member.as_ref(),
                (None, Others::Allowed) => None,
                (None, Others::Keep(rule)) => Some(&**rule),
                (None, Others::Refused) => {
                    return Err(refuse(self.check, format!("has no member `{}`", escaped(&name))));
                }
            };
            if let Err(fault) = map.next_value_seed(Place { check: self.check, rule: member }) {
                self.check.path.push(name.into_owned());
                return Err(fault);
            }
        }
        if required < rule.required.len() {
            return Err(refuse(self.check, format!("must have {}", rule.required.join(", "))));
        }
        self.is_value(|_| false)?;
        self.has_size(rule.members, count, "members")
    }
}

#[cfg(test)]
mod tests;
