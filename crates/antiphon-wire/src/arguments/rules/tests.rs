use super::*;
use crate::arguments::decode;
use antiphon_schema::CompiledSchema;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use std::{collections::BTreeMap, sync::LazyLock};

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only decoded")]
struct Plain {
    text: String,
    count: u8,
    ratio: f64,
    maybe: Option<i64>,
    flags: Vec<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only decoded")]
struct Bounded {
    #[schemars(range(min = 1, max = 10))]
    count: i32,
    #[schemars(length(min = 2, max = 3))]
    name: String,
    #[schemars(length(max = 2))]
    list: Vec<u8>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only decoded")]
struct Inner {
    size: Size,
    bounded: Option<Box<Bounded>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only decoded")]
struct Nested {
    inner: Inner,
    #[serde(default)]
    all: BTreeMap<String, Inner>,
    pair: Option<(u8, String)>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "lowercase")]
#[allow(dead_code, reason = "only decoded")]
enum Tagged {
    Number { value: f64 },
    Add { left: Box<Tagged>, right: Box<Tagged> },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only decoded")]
enum Mixed {
    Nothing,
    Text(String),
    Both { size: Size, count: u8 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only decoded")]
struct Variants {
    tagged: Option<Tagged>,
    mixed: Mixed,
    size: Option<Size>,
}

/// The schema of a type, by the validator and by decoding with rules.
struct Both<T> {
    validator: CompiledSchema,
    rules: Rules,
    decodes: fn(&str) -> serde_json::Result<T>,
}

impl<T: DeserializeOwned + JsonSchema> Both<T> {
    fn new() -> Self {
        let schema = schemars::schema_for!(T).to_value();
        let validator = CompiledSchema::compile(&schema).unwrap();
        let rules = Rules::of(&schema).unwrap_or_else(|fault| panic!("{fault:?} in {schema:#}"));
        Self { validator, rules, decodes: decode::<T> }
    }

    fn agree(&self, value: &Value) -> Result<bool, String> {
        let text = value.to_string();
        let expected = self.validator.faults(value);
        let (rule, decoded) = (self.rules.fault(&text), (self.decodes)(&text));
        let is_right = rule.is_none() && decoded.is_ok();
        if is_right == expected.is_none() {
            return Ok(is_right);
        }
        Err(format!(
            "{text}: {expected:?}, but {rule:?} and {:?}",
            decoded.err().map(|fault| fault.to_string())
        ))
    }
}

/// Values near those that the types take: right ones, in which some parts are others.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3_i64..14).prop_map(Value::from),
        prop_oneof![Just(json!(1.5)), Just(json!(3.0)), Just(json!(300)), Just(json!(1e3))],
        "[a-dé]{0,4}".prop_map(Value::from),
        prop_oneof![Just("small"), Just("large"), Just("Nothing"), Just("number"), Just("add")]
            .prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([1, 2, 3])),
        Just(json!({"small": null})),
    ]
}

/// An object of these members, some of which are missing.
fn object(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| {
            (prop::bool::weighted(0.93), value).prop_map(move |(is, value)| is.then_some((name, value)))
        })
        .collect();
    let more = prop::option::weighted(0.05, ("[a-z]{1,3}", scalar()));
    (members, more)
        .prop_map(|(members, more)| {
            let mut all: serde_json::Map<String, Value> =
                members.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect();
            all.extend(more);
            Value::Object(all)
        })
        .boxed()
}

fn or_other(right: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![9 => right, 1 => scalar()].boxed()
}

fn list(item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    or_other(prop::collection::vec(item, 0..4).prop_map(Value::from))
}

fn plain() -> BoxedStrategy<Value> {
    object(vec![
        ("text", or_other("[a-z]{0,3}".prop_map(Value::from))),
        ("count", or_other((0_u8..5).prop_map(Value::from))),
        (
            "ratio",
            or_other(any::<f32>().prop_filter("finite", |ratio| ratio.is_finite()).prop_map(Value::from)),
        ),
        ("maybe", or_other(Just(Value::Null))),
        ("flags", list(or_other(any::<bool>().prop_map(Value::from)))),
    ])
}

fn size() -> BoxedStrategy<Value> {
    or_other(prop_oneof![Just(json!("small")), Just(json!("large"))])
}

fn bounded() -> BoxedStrategy<Value> {
    object(vec![
        ("count", or_other((0_i32..12).prop_map(Value::from))),
        ("name", or_other("[a-zé]{1,4}".prop_map(Value::from))),
        ("list", list(or_other((0_u8..5).prop_map(Value::from)))),
    ])
}

fn inner() -> BoxedStrategy<Value> {
    or_other(object(vec![("size", size()), ("bounded", or_other(bounded()))]))
}

fn nested() -> BoxedStrategy<Value> {
    let all = prop::collection::btree_map("[a-z]{1,2}", inner(), 0..3).prop_map(|all| json!(all));
    let pair = (0_u8..9, "[a-z]").prop_map(|pair| json!(pair));
    object(vec![("inner", inner()), ("all", or_other(all)), ("pair", or_other(pair))])
}

fn tagged() -> BoxedStrategy<Value> {
    let leaf = object(vec![
        ("op", or_other(Just(json!("number")))),
        ("value", or_other((0..5).prop_map(Value::from))),
    ]);
    leaf.prop_recursive(3, 12, 2, |deeper| {
        object(vec![
            ("op", or_other(Just(json!("add")))),
            ("left", deeper.clone().boxed()),
            ("right", deeper.boxed()),
        ])
    })
    .boxed()
}

fn variants() -> BoxedStrategy<Value> {
    let both = object(vec![("size", size()), ("count", or_other((0_u8..5).prop_map(Value::from)))]);
    let mixed = prop_oneof![
        Just(json!("Nothing")),
        "[a-z]".prop_map(|text| json!({"Text": text})),
        both.prop_map(|both| json!({"Both": both})),
    ];
    object(vec![("tagged", or_other(tagged())), ("mixed", or_other(mixed)), ("size", or_other(size()))])
}

static PLAIN: LazyLock<Both<Plain>> = LazyLock::new(Both::new);
static NESTED: LazyLock<Both<Nested>> = LazyLock::new(Both::new);
static VARIANTS: LazyLock<Both<Variants>> = LazyLock::new(Both::new);
static BOUNDED: LazyLock<Both<Bounded>> = LazyLock::new(Both::new);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The advertised schema and the decoder agree on every value.
    #[test]
    fn decoding_with_rules_takes_what_the_schema_takes(
        plain in plain(), nested in nested(), variants in variants(), bounded in bounded(),
    ) {
        let faults = [
            PLAIN.agree(&plain).err(),
            NESTED.agree(&nested).err(),
            VARIANTS.agree(&variants).err(),
            BOUNDED.agree(&bounded).err(),
        ];
        prop_assert!(faults.iter().all(Option::is_none), "{faults:?}");
    }
}

#[test]
fn plain_types_need_no_rules() {
    let rules = Rules::of(&schemars::schema_for!(Plain).to_value()).unwrap();
    assert!(rules.root.as_ref().is_none_or(|root| root.types.is_none()), "{rules:?}");
}

#[test]
fn faults_name_their_place() {
    let schema = json!({"type": "object", "properties": {
        "count": {"type": "integer", "minimum": 1, "multipleOf": 2},
        "names": {"type": "array", "items": {"type": "string", "maxLength": 2}, "minItems": 1},
        "size": {"type": "string", "enum": ["s", "l"]},
    }, "additionalProperties": false});
    let rules = Rules::of(&schema).unwrap();
    for (arguments, fault) in [
        (json!({"count": 4, "names": ["ab"], "size": "l"}), None),
        (json!({"count": 0}), Some("count: must be at least 1")),
        (json!({"count": 3}), Some("count: must be a multiple of 2")),
        (json!({"names": []}), Some("names: must have at least 1 items")),
        (json!({"names": ["a", "abc"]}), Some("names/1: must have at most 2 characters")),
        (json!({"size": "m"}), Some(r#"size: must be one of "s", "l""#)),
        (json!({"other": 1}), Some("has no member `other`")),
    ] {
        assert_eq!(rules.fault(&arguments.to_string()).as_deref(), fault, "{arguments}");
    }
}

#[test]
fn what_is_not_covered_is_named() {
    for (property, keyword) in [
        (json!({"type": "string", "pattern": "^a"}), "pattern"),
        (json!({"type": "array", "uniqueItems": true}), "uniqueItems"),
        (json!({"not": {"type": "string"}}), "not"),
        (json!({"$ref": "https://example.com/x"}), "$ref"),
    ] {
        let fault = Rules::of(&json!({"type": "object", "properties": {"it": property}})).unwrap_err();
        assert_eq!(fault.keyword, keyword);
        assert!(fault.place.contains("it"), "{fault:?}");
    }
}

/// Alternatives within alternatives are tried one by one: a value made to be costly is refused.
#[test]
fn a_costly_value_is_refused() {
    let schema = json!({"type": "object", "properties": {"it": {"$ref": "#/$defs/Deep"}}, "$defs": {"Deep": {"anyOf": [
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/Deep"}, "a": {"const": 1}}, "required": ["a"]},
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/Deep"}, "b": {"const": 1}}, "required": ["b"]},
    ]}}});
    let rules = Rules::of(&schema).unwrap();
    let text = format!("{}{}{}", r#"{"it":"#, r#"{"next":"#.repeat(60) + "1", "}".repeat(61));
    assert_eq!(rules.fault(&text).unwrap(), "the arguments are too costly to check");
}
