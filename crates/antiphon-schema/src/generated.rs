//! Properties that hold for generated schemas and values.

use super::CompiledSchema;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Generates schemas with every kind of reference, including unresolvable and circular ones.
fn any_schema() -> impl Strategy<Value = Value> {
    let references =
        ["#", "#/$defs/a", "#/$defs/b", "#anchor", "urn:r", "urn:r#in", "#/$defs/c/items", "#/x/y"];
    let leaf = prop_oneof![
        3 => any::<bool>().prop_map(Value::Bool),
        3 => prop::sample::select(vec!["string", "object", "array", "integer"]).prop_map(|name| json!({"type": name})),
        4 => prop::sample::select(references.to_vec()).prop_map(|to| json!({"$ref": to})),
        1 => Just(json!({"$dynamicRef": "#dynamic"})),
        1 => Just(json!({"pattern": "^a+$"})),
        1 => Just(json!({"const": {"x": 1}})),
    ];
    let within = leaf.prop_recursive(4, 24, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            pair.clone()
                .prop_map(|(one, other)| json!({"properties": {"x": one}, "additionalProperties": other})),
            pair.clone().prop_map(|(one, other)| json!({"allOf": [one, other]})),
            pair.clone()
                .prop_map(|(one, other)| json!({"anyOf": [one, other], "unevaluatedProperties": false})),
            pair.clone().prop_map(|(one, other)| json!({"oneOf": [one, other]})),
            pair.clone().prop_map(|(one, other)| json!({"prefixItems": [one], "items": other})),
            pair.prop_map(
                |(one, other)| json!({"if": one, "then": other, "patternProperties": {"^y": true}})
            ),
            inner.clone().prop_map(|one| json!({"not": one, "unevaluatedItems": false})),
            inner.prop_map(|one| json!({"dependentSchemas": {"x": one}, "propertyNames": {"maxLength": 3}})),
        ]
    });
    prop::collection::vec(within, 5).prop_map(|mut parts| {
        let mut part = || parts.pop().unwrap_or_default();
        json!({"allOf": [part()], "x": {"y": part()}, "$defs": {
            "a": {"$anchor": "anchor", "items": part()},
            "b": {"$id": "urn:r", "properties": {"x": {"$anchor": "in", "allOf": [part()]}}},
            "c": {"$dynamicAnchor": "dynamic", "items": part()},
        }})
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("aa")),
        Just(json!("b")),
        Just(json!(1)),
        Just(json!(null)),
        Just(json!({"x": 1}))
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::hash_map("[xyz]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Rewriting references as local pointers does not change the meaning of a schema.
    #[test]
    fn rewriting_changes_no_verdict(schema in any_schema(), value in any_value()) {
        if let Ok(compiled) = CompiledSchema::compile(&schema) {
            let faults = compiled.faults(&value);
            let original = jsonschema::options().offline().build(&schema);
            prop_assert!(original.is_ok(), "{:?}", original);
            let valid = original.is_ok_and(|original| original.is_valid(&value));
            let costly = faults.as_deref().is_some_and(|faults| faults.contains("too costly"));
            prop_assert!(costly || valid == faults.is_none(), "{:?}", faults);
        }
    }
}
