//! Every definition of the specification's schema is read as a type of ours or named here with the reason why not,
//! and no member of a definition gets lost. The values are made from the schema: of each definition the least one,
//! then one more for each member, each variant of it, and each variant of what is in it.

use crate::modelled::{Codec, MODELLED, plain};
use antiphon_wire::{CompletionReference, ListChangedParams, ResourceContents};
use serde_json::{Map, Value, json};
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

/// Definitions that are not read as a type of their own.
const NOT_OURS: &[(&str, &str)] = &[
    ("BaseMetadata", "a base: `name` and `title` are members of each definition that extends it"),
    ("CacheableResult", "a base: its members are members of each result that extends it"),
    ("ClientResult", "an EmptyResult: no request of this revision goes to a client"),
    ("EmptyResult", "a Result: no request of this revision is answered with one"),
    ("Icons", "a base: `icons` is a member of each definition that extends it"),
    (
        "InputResponse",
        "never read as a union: an answer is read as the kind of its ask, which is in the table",
    ),
    ("InputResponseRequestParams", "a base: its members are members of each params that extends it"),
    ("Notification", "a base: the part of a JSONRPCNotification without `jsonrpc`"),
    ("PaginatedResult", "a base: its members are members of each list that extends it"),
    ("Request", "a base: the part of a JSONRPCRequest without `jsonrpc` and `id`"),
    ("ResourceContents", "a base: contents have either `text` or `blob`, and without both they are refused"),
    ("Result", "a base: its members are members of each result that extends it"),
    ("ServerResult", "never read as a union: a result is read as that of its request's method"),
];

/// Members the schema may leave out, and that are always there on our wire: the definition and the member.
const ALWAYS: &[(&str, &str)] = &[
    // Older clients look for it.
    ("ElicitRequestFormParams", "mode"),
    // Some clients take a result without it as final.
    ("InputRequiredResult", "inputRequests"),
    // > Servers **MUST** include at least one of `inputRequests` or `requestState`
    ("InputRequiredResult", "requestState"),
];

/// Members that are not written if they are empty, for it says the same: where the member is, and the member.
const SAME_IF_EMPTY: &[(&str, &str)] = &[
    ("Implementation", "icons"),
    ("ListRootsRequest", "params"),
    ("Prompt", "arguments"),
    ("Prompt", "icons"),
    ("Resource", "icons"),
    ("ResourceLink", "icons"),
    ("ResourceTemplate", "icons"),
    ("Tool", "icons"),
    // Where nothing has a title, choices are written as those without titles: as an empty `enum`.
    ("LegacyTitledEnumSchema", "enumNames"),
    ("TitledSingleSelectEnumSchema", "oneOf"),
    ("items", "anyOf"),
];

/// Numbers that are whole by what the specification says of them: the member, or the definition.
///
/// The schema in JSON says `integer` wherever the one in TypeScript says `number`, which decides: any other
/// `integer` may have a fraction. A progress token may not: the specification's text says so.
const WHOLE: &[&str] = &[
    "ProgressToken",
    "RequestId",
    "code",
    "maxItems",
    "maxLength",
    "minItems",
    "minLength",
    "size",
    "total",
    "ttlMs",
];

/// The definitions of the schema, and the values that are made from them.
struct Schema {
    definitions: Map<String, Value>,
    made: RefCell<HashMap<String, Rc<[Value]>>>,
}

impl Schema {
    fn load() -> Self {
        let schema: Value = serde_json::from_str(include_str!("schema.json")).unwrap();
        Self { definitions: schema["$defs"].as_object().unwrap().clone(), made: RefCell::default() }
    }

    /// Values of one definition; the first is the least.
    fn definition(&self, name: &str) -> Rc<[Value]> {
        if let Some(made) = self.made.borrow().get(name) {
            return made.clone();
        }
        let made: Rc<[Value]> = match name {
            // It holds itself.
            "JSONValue" => anything().into(),
            // An answer stays text until its ask is known: the least of each kind will do.
            "InputResponse" => {
                let kinds = self.definitions[name]["anyOf"].as_array().unwrap();
                kinds.iter().map(|kind| self.definition(name_in(&kind["$ref"]))[0].clone()).collect()
            }
            _ => self.variants(&self.definitions[name], name, name).into(),
        };
        self.made.borrow_mut().insert(name.to_owned(), made.clone());
        made
    }

    /// Values of a schema that stands in the definition `within` as the member `member`.
    fn variants(&self, schema: &Value, within: &str, member: &str) -> Vec<Value> {
        let each = |list: &Value| -> Vec<Value> {
            list.as_array().unwrap().iter().flat_map(|one| self.variants(one, within, member)).collect()
        };
        if let Some(reference) = schema.get("$ref") {
            return self.definition(name_in(reference)).to_vec();
        }
        if let Some(one) = schema.get("const") {
            return vec![one.clone()];
        }
        if let Some(some) = schema.get("enum") {
            return some.as_array().unwrap().clone();
        }
        if let Some(any) = schema.get("anyOf") {
            return each(any);
        }
        if let Some(all) = schema.get("allOf") {
            return self.object(&self.merged(all.as_array().unwrap()), within);
        }
        match &schema["type"] {
            Value::Array(kinds) => kinds.iter().flat_map(|kind| scalar(kind.as_str(), member)).collect(),
            kind if kind == "object" => self.object(schema, within),
            kind if kind == "array" => self.lists(schema, within, member),
            // > clients **MUST** treat an absent `resultType` as `"complete"`
            kind if kind == "string" && member == "resultType" => {
                vec![if within == "InputRequiredResult" { "input_required" } else { "complete" }.into()]
            }
            kind => scalar(kind.as_str(), member),
        }
    }

    /// One object schema that says what all of these say, the later ones more than the earlier ones.
    fn merged(&self, parts: &[Value]) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for part in parts {
            let part = match part.get("$ref") {
                Some(reference) => &self.definitions[name_in(reference)],
                None => part,
            };
            properties.extend(part["properties"].as_object().unwrap().clone());
            required.extend(part["required"].as_array().unwrap().clone());
        }
        json!({"type": "object", "properties": properties, "required": required})
    }

    fn lists(&self, schema: &Value, within: &str, member: &str) -> Vec<Value> {
        let entries = self.variants(&schema["items"], within, "");
        let mut lists: Vec<Value> = entries.iter().map(|entry| json!([entry])).collect();
        // The titles of choices are as many as these, and the least of a list is one.
        if member != "enumNames" {
            lists.push(json!([entries[0], entries[entries.len() - 1]]));
        }
        lists.push(json!([]));
        lists
    }

    fn object(&self, schema: &Value, within: &str) -> Vec<Value> {
        let none = Map::new();
        let properties = schema.get("properties").map_or(&none, |members| members.as_object().unwrap());
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
                || ALWAYS.contains(&(within, name))
        };
        let of_each = properties.iter().map(|(name, schema)| {
            let inside = if schema["type"] == "object" { name } else { within };
            let mut values = self.variants(schema, inside, name);
            if SAME_IF_EMPTY.contains(&(within, name)) {
                values.retain(|value| *value != json!([]) && *value != json!({}));
            }
            (name, values)
        });
        let of_each: Vec<(&String, Vec<Value>)> = of_each.collect();
        let mut least: Map<String, Value> = of_each
            .iter()
            .filter(|(name, _)| required(name))
            .map(|(name, all)| ((*name).clone(), all[0].clone()))
            .collect();
        // A `_meta` is open, though the schema in JSON does not say so.
        let any = json!({});
        let more =
            if within.ends_with("MetaObject") { Some(&any) } else { schema.get("additionalProperties") };
        let more = more.map(|schema| self.variants(schema, within, ""));
        if within.ends_with("MetaObject") {
            // Never empty, for an empty one may be left out.
            least.insert("org.example/kept".into(), json!([null, 1.0]));
        }
        let more = more.iter().flatten().map(|value| ("org.example/more", value));
        let others = of_each.iter().flat_map(|(name, all)| all.iter().map(|value| (name.as_str(), value)));
        let with = others.chain(more).map(|(name, value)| {
            let mut members = least.clone();
            members.insert(name.to_owned(), value.clone());
            Value::Object(members)
        });
        std::iter::once(Value::Object(least.clone())).chain(with).collect()
    }
}

/// The definition that a `$ref` names.
fn name_in(reference: &Value) -> &str {
    reference.as_str().unwrap().rsplit('/').next().unwrap()
}

/// Values of a type that has no parts; of any type without one.
fn scalar(kind: Option<&str>, member: &str) -> Vec<Value> {
    match kind {
        Some("string") => vec!["text".into(), "".into(), "\u{0}\"é\u{1d11e}\u{2028}".into()],
        Some("boolean") => vec![true.into(), false.into()],
        Some("null") => vec![Value::Null],
        Some("integer") if WHOLE.contains(&member) => {
            vec![7.into(), 0.into(), 9_007_199_254_740_993_u64.into()]
        }
        Some("number" | "integer") => {
            vec![7.into(), 0.5.into(), 3.0.into(), (-1.5e300).into(), u64::MAX.into()]
        }
        None => anything(),
        Some(other) => panic!("the schema has the type {other}"),
    }
}

fn anything() -> Vec<Value> {
    let odd = json!({"": null, "list": [[], {}, 3.0], "text": "\u{2028}", "min": i64::MIN});
    vec![
        odd,
        Value::Null,
        json!([]),
        json!({}),
        true.into(),
        0.into(),
        0.5.into(),
        "".into(),
        json!([null, {"a": 1.0}]),
    ]
}

/// Returns the part of this value that reading and writing loses, if there is one.
fn lost(value: &Value, codec: Codec) -> Option<String> {
    let text = value.to_string();
    match codec(&text) {
        // A number with a fraction is not one without: `3.0` must not become `3`.
        Ok(written) if serde_json::from_str::<Value>(&written).unwrap() == *value => None,
        Ok(written) => Some(format!("read:    {text}\nwritten: {written}")),
        Err(fault) => Some(format!("read: {text}\nrefused: {fault}")),
    }
}

#[test]
fn no_member_of_any_definition_is_lost() {
    let schema = Schema::load();
    let mut faults = Vec::new();
    for (definition, codecs) in MODELLED {
        for value in schema.definition(definition).iter() {
            faults.extend(
                codecs
                    .iter()
                    .filter_map(|codec| lost(value, *codec))
                    .map(|fault| format!("{definition}\n{fault}")),
            );
        }
    }
    assert!(
        faults.is_empty(),
        "{} values are not kept:\n{}",
        faults.len(),
        faults[..faults.len().min(20)].join("\n\n")
    );
}

#[test]
fn every_definition_is_read_as_a_type_or_known_not_to_be_ours() {
    let schema = Schema::load();
    let found: Vec<&str> = schema.definitions.keys().map(String::as_str).collect();
    let ours = MODELLED.iter().map(|(definition, _)| *definition);
    let mut known: Vec<&str> = ours.chain(NOT_OURS.iter().map(|(definition, _)| *definition)).collect();
    known.sort_unstable();
    assert_eq!(found.iter().copied().collect::<BTreeSet<_>>(), known.iter().copied().collect());
    assert_eq!(found.len(), known.len(), "a definition is in both tables, or twice in one");
}

#[test]
fn every_member_of_the_schema_is_in_a_value_made_from_it() {
    let schema = Schema::load();
    for (name, definition) in &schema.definitions {
        let made = schema.definition(name);
        for member in definition["properties"].as_object().into_iter().flat_map(Map::keys) {
            let with = made.iter().filter(|value| value.get(member).is_some());
            assert!(with.count() > 0, "{name}.{member}");
        }
    }
    // In a list of a union, in a map of a union, behind a reference.
    let result = schema.definition("CallToolResult");
    let kinds: BTreeSet<_> = result.iter().filter_map(|value| value["content"][0]["type"].as_str()).collect();
    assert_eq!(kinds, ["audio", "image", "resource", "resource_link", "text"].into());
    let asks = schema.definition("InputRequests");
    let formats = asks.iter().filter_map(|asks| {
        asks["org.example/more"]["params"]["requestedSchema"]["properties"]["org.example/more"]["format"]
            .as_str()
    });
    assert_eq!(formats.collect::<BTreeSet<_>>(), ["date", "date-time", "email", "uri"].into());
}

#[test]
fn a_lost_member_is_noticed() {
    let schema = Schema::load();
    let lost_of = |definition: &str, codec: Codec| {
        schema
            .definition(definition)
            .iter()
            .filter_map(|value| lost(value, codec))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(lost_of("ResourceUpdatedNotificationParams", plain::<ListChangedParams>).contains("written: {"));
    assert!(
        lost_of("ResourceTemplate", plain::<CompletionReference>).contains("refused: missing field `type`")
    );
    assert!(
        lost_of("ResourceContents", plain::<ResourceContents>)
            .contains("refused: resource contents have either")
    );
}
