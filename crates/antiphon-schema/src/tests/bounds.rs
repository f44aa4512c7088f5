//! Schemas and values that would cost too much: they are refused, or the work is bounded.

use super::*;

#[test]
fn what_applies_itself_to_the_same_value_is_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$ref": ""}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"if": true, "then": {"$ref": "#"}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [true, {"$ref": "#/$defs/a"}]}}}),
        json!({"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "anyOf": [{"$recursiveRef": "#"}]}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": {"$ref": "#"}}}),
        json!({"$id": "urn:a", "oneOf": [{"$ref": "urn:a"}]}),
        chain(50, |_, next| json!({"allOf": [next]}), json!({"$ref": "#/$defs/d7"})),
    ] {
        refused(&schema, "without end");
    }
    check(json!({"properties": {"x": {"$ref": "#"}}, "maxProperties": 1}), &[nested(100, json!(1))], &[]);
}

#[test]
fn bounds_hold_on_the_text() {
    refused(&nested(MAX_SCHEMA_DEPTH, json!(1)), "nests deeper");
    refused(&json!({"description": "x".repeat(MAX_SCHEMA_SIZE)}), "larger than");
    refused(&json!({"anyOf": vec![json!(true); MAX_SUBSCHEMAS]}), "subschemas");
    let patterns: Map<String, Value> =
        (0..=MAX_PATTERNS).map(|at| (format!("^{at}$"), json!(true))).collect();
    refused(&json!({ "patternProperties": patterns }), "regular expressions");
    let (half, over) = ("a".repeat(MAX_PATTERN_BYTES / 2), "b".repeat(MAX_PATTERN_BYTES / 2 + 1));
    check(json!({"patternProperties": {&half: true}, "pattern": &half}), &[json!({})], &[]);
    refused(&json!({"patternProperties": {&half: true, &over: true}}), "regular expressions");
    refused(&json!({"properties": {"x": {"pattern": "(a|b)".repeat(100_000)}}}), "regular expressions");
    refused(&json!({"pattern": "(?=a)b"}), "cannot be used");
    refused(&json!({"pattern": "(a)\\1"}), "cannot be used");
    refused(&json!({"pattern": "((a{1000}){1000}){1000}"}), "cannot be used");
}

#[test]
fn a_schema_that_doubles_in_place_is_refused() {
    // 2^n visits of one value, in n lines.
    let doubling =
        |length| chain(length, |_, next| json!({"allOf": [next, next]}), json!({"type": "object"}));
    assert_eq!(faults(&doubling(12), &json!({})), "");
    refused(&doubling(24), "steps to check");
    refused(&doubling(500), "steps to check");
    // A member that each level visits again doubles the work too.
    let again = |length: usize| {
        (0..length).fold(
            json!({"properties": {"x": {}}}),
            |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": false}),
        )
    };
    assert_eq!(faults(&again(5), &nested(2, json!(1))), "");
    refused(&again(30), "steps to check");
    let long = chain(2 * MAX_CHAIN as usize, |_, next| json!({"allOf": [next]}), json!({"type": "object"}));
    refused(&long, "in a chain");
}

#[test]
fn a_schema_that_doubles_with_the_depth_of_a_value_is_bounded_by_the_value() {
    // Not recursive: the number of paths is bounded, but far too large for a deep value.
    let steps = chain(
        40,
        |_, next| json!({"allOf": [{"properties": {"x": next}}, {"properties": {"x": next}}]}),
        json!({"type": "string"}),
    );
    check(steps, &[nested(8, json!({}))], &[nested(40, json!({}))]);
    // Recursive with several targets: the validator does not cache every verdict.
    for length in [2, 3, 30] {
        let twice =
            |next: Value| json!({"allOf": [{"properties": {"x": next}}, {"properties": {"x": next}}]});
        let schema = chain(length, |_, next| twice(next), json!({"$ref": "#/$defs/d0"}));
        let compiled = CompiledSchema::compile(&schema).unwrap();
        assert_eq!(compiled.faults(&nested(8, json!(1))), None);
        let fault = compiled.faults(&nested(100, json!(1))).unwrap();
        assert!(fault.contains("too costly"), "{fault}");
    }
    let again = json!({"$defs": {"n": {"anyOf": [{"properties": {"x": {"$ref": "#/$defs/n"}}}], "unevaluatedProperties": false}},
        "$ref": "#/$defs/n"});
    let compiled = CompiledSchema::compile(&again).unwrap();
    assert_eq!(compiled.faults(&nested(5, json!(1))), None);
    assert!(compiled.faults(&nested(100, json!(1))).unwrap().contains("too costly"));
}

#[test]
fn a_recursion_with_one_target_is_answered_however_often_it_branches() {
    // 20^40 paths. Without cached verdicts, validation would not end.
    let variants: Vec<Value> = (0..20)
        .map(|at| json!({"properties": {"x": {"$ref": "#/$defs/e"}, "y": {"const": at}}, "required": ["y"]}))
        .collect();
    let schema =
        json!({"$ref": "#/$defs/e", "$defs": {"e": {"anyOf": [{"type": "integer"}, {"anyOf": variants}]}}});
    let value = |last: i32| (0..40).fold(json!(1), |inner, _| json!({"x": inner, "y": last}));
    assert_eq!(faults(&schema, &value(19)), "");
    assert_eq!(
        faults(&schema, &value(20)),
        "the value does not match the schema; it is too large to list the faults"
    );
    let twice =
        json!({"allOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}]});
    check(twice, &[nested(100, json!(1))], &[]);
}

#[test]
fn patterns_are_matched_in_linear_time_or_not_at_all() {
    let schema = json!({"type": "string", "pattern": "^(a+)+$"});
    check(schema, &[json!("a".repeat(50_000))], &[json!("a".repeat(50_000) + "b")]);
    // The automaton of this expression is too large for a table, so each byte may cost the length of the expression.
    let heavy = json!({"pattern": "[ab]*a[ab]{1000}[ab]{1000}$"});
    let compiled = CompiledSchema::compile(&heavy).unwrap();
    assert_eq!(compiled.faults(&json!("a".repeat(3_000))), None);
    assert!(compiled.faults(&json!("a".repeat(1_000_000))).unwrap().contains("too costly"));
    let names = json!({"patternProperties": {"[ab]*a[ab]{1000}[ab]{1000}$": true}});
    let value = Value::Object(Map::from_iter([("a".repeat(1_000_000), json!(1))]));
    assert!(faults(&names, &value).contains("too costly"));
}

#[test]
fn a_value_that_nests_too_deep_is_refused() {
    let schema = json!({"type": "object"});
    assert_eq!(faults(&schema, &nested(MAX_INSTANCE_DEPTH - 1, json!(1))), "");
    let deep = nested(20_000, json!(1));
    let compiled = CompiledSchema::compile(&schema).unwrap();
    assert!(compiled.faults(&deep).unwrap().contains("nests deeper"));
    // The drop would be recursive.
    std::mem::forget(deep);
}

/// Runs on a stack of 1.5 MiB; a worker of tokio has 2 MiB, and an optimized build needs less.
#[test]
fn the_deepest_that_is_allowed_fits_the_stack() {
    let within = std::thread::Builder::new().stack_size(3 << 19);
    within.spawn(deepest).unwrap().join().unwrap();
}

fn deepest() {
    let wrap =
        |levels: usize, inner: Value| (0..levels).fold(inner, |inner, _| json!({"properties": {"x": inner}}));
    // Definitions of maximum depth, each with a reference to the next, and the last to the first.
    let levels = MAX_COMPILED as usize / NESTED_COMPILATIONS as usize - 3;
    let ends = [json!({"$ref": "#/$defs/d0"}), json!({"type": "number"})];
    for (length, end) in [17, 9].into_iter().zip(ends) {
        let schema = chain(length, |_, next| wrap(levels, next), end);
        let compiled = CompiledSchema::compile(&schema).unwrap();
        assert_eq!(compiled.faults(&nested(MAX_INSTANCE_DEPTH - 1, json!(1))), None);
    }
    let inline = wrap((MAX_SCHEMA_DEPTH - 2) / 2, json!(true));
    assert_eq!(faults(&inline, &nested(100, json!(1))), "");
    // Many schemas for each level of the value.
    let link = json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "additionalProperties": {"$ref": "#/$defs/a"}, "type": "object"});
    for branch in [json!({"anyOf": [{"type": "number"}, link]}), json!({"oneOf": [{"type": "number"}, link]})]
    {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [branch]}}});
        let compiled = CompiledSchema::compile(&schema).unwrap();
        let depth = MAX_CHAIN as usize / 4 - 2;
        assert_eq!(compiled.faults(&nested(depth, json!(1))), None);
        assert!(compiled.faults(&nested(depth, json!("y"))).unwrap().contains("is not valid under any"));
        assert!(compiled.faults(&nested(depth + 20, json!("y"))).unwrap().contains("too costly"));
    }
    let long =
        chain(MAX_CHAIN as usize / 2 - 10, |_, next| json!({"allOf": [next]}), json!({"type": "object"}));
    assert_eq!(faults(&long, &json!({})), "");
    assert_ne!(faults(&long, &json!(1)), "");
}

#[test]
fn a_schema_that_would_overflow_the_stack_is_refused() {
    let wrap = |inner: Value| (0..40).fold(inner, |inner, _| json!({"properties": {"x": inner}}));
    for end in [json!(true), json!({"$ref": "#/$defs/d0"})] {
        refused(&chain(20, |_, next| wrap(next), end), "in a chain");
    }
    // A loop through all of a thousand.
    let step = |_, next: Value| json!({"properties": {"x": next}});
    refused(&chain(1000, step, json!({"$ref": "#/$defs/d0"})), "in a chain");
    refused(&chain(1000, step, json!(true)), "in a chain");
}

/// Checks verdicts by the computed cost alone, without the validator.
#[test]
fn work_is_counted() {
    let twice = |next: Value| json!({"allOf": [{"properties": {"x": next}}, {"properties": {"x": next}}]});
    let weigh = |schema: &Value, value: &Value| CompiledSchema::compile(schema).unwrap().costs.weigh(value);
    let one_target = twice(json!({"$ref": "#"}));
    let two_targets = chain(2, |_, next| twice(next), json!({"$ref": "#/$defs/d0"}));
    for (schema, depth, verdict) in [
        (&one_target, 10, Verdict::WithFaults),
        (&one_target, 18, Verdict::WithoutFaults),
        (&one_target, 100, Verdict::WithoutFaults),
        (&two_targets, 10, Verdict::WithFaults),
        (&two_targets, 30, Verdict::TooCostly),
        (&two_targets, MAX_INSTANCE_DEPTH, Verdict::TooDeep),
    ] {
        assert_eq!(weigh(schema, &nested(depth, json!(1))), verdict, "{schema} at {depth}");
    }
    // The work of a flat schema is not counted per value.
    let flat = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let costs = CompiledSchema::compile(&flat).unwrap().costs;
    assert!(costs.rules[0].unfolded.steps < 10, "{:?}", costs.rules[0]);
}
