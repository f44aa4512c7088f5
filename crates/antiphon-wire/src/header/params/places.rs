//! Every place of a schema at which a subschema may appear, and the path to the place.

use super::param::KEYWORD;
use crate::foreign_text::escaped;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The maximum length of a pointer in a message, in characters. A longer pointer is cut.
const MAX_POINTER: usize = 200;

/// A walk through a schema without recursion: `seen` is the list of all places and the queue of the places
/// that are still to open.
pub(super) struct Places<'a> {
    seen: Vec<Seen<'a>>,
    next: usize,
}

struct Seen<'a> {
    value: &'a Value,
    chain: Chain,
    step: Option<Step<'a>>,
}

struct Step<'a> {
    parent: usize,
    name: Cow<'a, str>,
}

/// The relation of a place to the chain of `properties` from the root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Root,
    /// A map of properties on the chain: its members are properties, and the map itself is no schema.
    Properties,
    Property,
    /// A map whose members are schemas under names that are not keywords; off the chain.
    Named,
    /// A schema, or a list of schemas, or an unknown value; off the chain.
    Off,
}

/// An object that is, or may be, a schema.
pub(super) struct Place<'a> {
    pub(super) schema: &'a Map<String, Value>,
    index: usize,
    chain: Chain,
}

impl Place<'_> {
    /// Returns true if the place is statically reachable.
    ///
    /// > _statically reachable_ from the schema root: reachable via a chain consisting solely of `properties`
    /// > keys.
    pub(super) fn is_property(&self) -> bool {
        self.chain == Chain::Property
    }
}

impl<'a> Places<'a> {
    pub(super) fn of(schema: &'a Value) -> Self {
        Self { seen: vec![Seen { value: schema, chain: Chain::Root, step: None }], next: 0 }
    }

    /// Returns the next schema; schemas nearer to the root come first.
    pub(super) fn next(&mut self) -> Option<Place<'a>> {
        while let Some(&Seen { value, chain, .. }) = self.seen.get(self.next) {
            let index = self.next;
            self.next += 1;
            match value {
                Value::Object(members) => {
                    self.open_object(index, chain, members);
                    if !matches!(chain, Chain::Properties | Chain::Named) {
                        return Some(Place { schema: members, index, chain });
                    }
                }
                // A list of schemas; it leads off the chain, whatever it is a list for.
                Value::Array(items) => {
                    for (at, item) in items.iter().enumerate() {
                        self.push(index, Cow::Owned(at.to_string()), item, Chain::Off);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn open_object(&mut self, index: usize, chain: Chain, members: &'a Map<String, Value>) {
        for (name, value) in members {
            let inner = match chain {
                Chain::Properties => Some(Chain::Property),
                Chain::Named => Some(Chain::Off),
                Chain::Root | Chain::Property => keyword(name, true),
                Chain::Off => keyword(name, false),
            };
            if let Some(inner) = inner {
                self.push(index, Cow::Borrowed(name), value, inner);
            }
        }
    }

    fn push(&mut self, parent: usize, name: Cow<'a, str>, value: &'a Value, chain: Chain) {
        if value.is_object() || value.is_array() {
            self.seen.push(Seen { value, chain, step: Some(Step { parent, name }) });
        }
    }

    /// Returns the names of the properties that lead to a property.
    pub(super) fn path(&self, place: &Place<'_>) -> Vec<String> {
        let named = |at: &Seen<'a>| at.chain == Chain::Property;
        let mut path: Vec<String> = self.steps(place.index, named).map(Cow::into_owned).collect();
        path.reverse();
        path
    }

    /// Returns the place as a JSON pointer for people: without characters that would damage a log, and cut to
    /// the maximum length.
    pub(super) fn pointer(&self, place: &Place<'_>) -> String {
        let mut names: Vec<Cow<'a, str>> = self.steps(place.index, |_| true).collect();
        names.reverse();
        let in_pointer = |name: &Cow<'a, str>| name.replace('~', "~0").replace('/', "~1");
        let whole: String = names.iter().flat_map(|name| ["/".to_owned(), in_pointer(name)]).collect();
        escaped(&whole).limit(MAX_POINTER).to_string()
    }

    /// Returns the names of the wanted steps, from the place up to the root.
    fn steps(&self, index: usize, wanted: impl Fn(&Seen<'a>) -> bool) -> impl Iterator<Item = Cow<'a, str>> {
        let up = move |at: &&Seen<'a>| at.step.as_ref().map(|step| &self.seen[step.parent]);
        std::iter::successors(Some(&self.seen[index]), up)
            .filter(move |at| wanted(at))
            .filter_map(|at| at.step.as_ref().map(|step| step.name.clone()))
    }
}

/// Returns the kind of place that a keyword leads to; `None` if the keyword's value contains no schema.
///
/// > The chain **MUST NOT** pass through `items` (or any other array keyword), composition keywords (`oneOf`,
/// > `anyOf`, `allOf`, `not`), conditional keywords (`if`/`then`/`else`), or `$ref`.
///
/// References are not followed: their targets are found at their own places. An unknown keyword is searched,
/// because a reference may lead into it.
fn keyword(name: &str, on_chain: bool) -> Option<Chain> {
    match name {
        "properties" if on_chain => Some(Chain::Properties),
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" => Some(Chain::Named),
        // Of older dialects.
        "definitions" | "dependencies" => Some(Chain::Named),
        // Data, not schemas; the last one maps names of properties to names of properties.
        "const" | "enum" | "default" | "examples" | "dependentRequired" => None,
        // The caller that opened the schema reads the annotation itself.
        KEYWORD => None,
        _ => Some(Chain::Off),
    }
}
