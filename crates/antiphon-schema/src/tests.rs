mod bounds;

use super::{fault::*, *};
use serde_json::{Map, json};
use std::net::TcpListener;

/// Returns the faults of a value; empty if the value is valid.
fn faults(schema: &Value, value: &Value) -> String {
    let compiled = CompiledSchema::compile(schema).unwrap_or_else(|fault| panic!("{schema}: {fault}"));
    compiled.faults(value).unwrap_or_default()
}

fn check(schema: Value, valid: &[Value], invalid: &[Value]) {
    for value in valid {
        assert_eq!(faults(&schema, value), "", "{schema} on {value}");
    }
    for value in invalid {
        assert_ne!(faults(&schema, value), "", "{schema} on {value}");
    }
}

fn refused(schema: &Value, words: &str) {
    let fault = CompiledSchema::compile(schema).expect_err(words).to_string();
    assert!(fault.contains(words), "{fault}");
    assert!(fault.len() < 1000, "{fault}");
}

/// Builds `{"x": {"x": ...}}` without recursion.
fn nested(depth: usize, innermost: Value) -> Value {
    (0..depth).fold(innermost, |inner, _| Value::Object(Map::from_iter([("x".to_owned(), inner)])))
}

/// Builds the definitions `d0`, `d1`, ... and a reference to the first.
fn chain(length: usize, definition: impl Fn(usize, Value) -> Value, last: Value) -> Value {
    let link = |at: usize| if at < length { json!({"$ref": format!("#/$defs/d{at}")}) } else { last.clone() };
    let definitions: Map<String, Value> =
        (0..length).map(|at| (format!("d{at}"), definition(at, link(at + 1)))).collect();
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn faults_are_worded_as_ever() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "l": {"items": {"type": "string"}}},
        "required": ["n"],
    });
    for (value, words) in [
        (json!({}), "\"n\" is a required property"),
        (json!({"n": "x"}), "n: \"x\" is not of type \"integer\""),
        (json!({"n": 1, "l": ["a", 2]}), "l/1: 2 is not of type \"string\""),
        (
            json!({"n": 1, "l": [1, 2, 3, 4, 5, 6, 7]}),
            "l/0: 1 is not of type \"string\"; l/1: 2 is not of type \"string\"; l/2: 3 is not of type \"string\"; \
             l/3: 4 is not of type \"string\"; l/4: 5 is not of type \"string\"",
        ),
        (json!({"n": 1}), ""),
    ] {
        assert_eq!(faults(&schema, &value), words);
    }
}

#[test]
fn the_dialect_is_the_declared_one_or_2020_12() {
    // Here `items` is a list in all dialects but the last.
    for (uri, _) in keywords::SUPPORTED.into_iter().skip(1) {
        for uri in [uri, uri.trim_end_matches('#')] {
            let schema = json!({"$schema": uri, "items": [{"type": "string"}]});
            check(schema, &[json!(["a", 1])], &[json!([1])]);
        }
    }
    for schema in [
        json!({"prefixItems": [{"type": "string"}]}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema#", "prefixItems": [{"type": "string"}]}),
    ] {
        check(schema, &[json!(["a", 1])], &[json!([1])]);
    }
    refused(&json!({"items": [{"type": "string"}]}), "not valid");
    let schema =
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true});
    check(schema, &[json!(2)], &[json!(1)]);
}

#[test]
fn an_unknown_dialect_is_refused_and_the_known_ones_are_named() {
    for uri in [
        "http://json-schema.org/draft-03/schema#",
        "https://example.com/my",
        "https://json-schema.org/draft/2020-12/schema#x",
        "",
    ] {
        let schema = json!({"$schema": uri});
        refused(&schema, "is not supported; supported are https://json-schema.org/draft/2020-12/schema, ");
        refused(&schema, "http://json-schema.org/draft-07/schema#");
    }
    refused(&json!({"$schema": 7}), "is not supported");
    let inner = json!({"$id": "urn:x", "$schema": "http://json-schema.org/draft-07/schema#"});
    refused(&json!({"$defs": {"a": inner}}), "inside of a schema of another");
}

#[test]
fn a_schema_is_valid_for_its_dialect() {
    for schema in [
        json!({"type": "text"}),
        json!({"properties": []}),
        json!({"properties": {"a": 7}}),
        json!({"required": "a"}),
        json!({"minLength": -1}),
        json!({"pattern": "("}),
        json!({"$id": 7}),
        json!([]),
        json!("string"),
        json!(null),
    ] {
        assert!(CompiledSchema::compile(&schema).is_err(), "{schema}");
    }
    check(json!(true), &[json!(1)], &[]);
    check(json!(false), &[], &[json!(1)]);
}

#[test]
fn nothing_outside_is_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let uri = format!("http://{}/s.json", listener.local_addr().unwrap());
    for schema in [
        json!({ "$ref": uri }),
        json!({"$ref": format!("{uri}#/a")}),
        json!({"properties": {"a": {"items": {"$ref": uri}}}}),
        json!({ "$dynamicRef": uri }),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": uri}),
        json!({"$id": uri, "$ref": "other.json"}),
        json!({"$defs": {"unused": {"$ref": uri}}}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": uri, "$ref": "t.json#"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"$ref": "other.json"}),
        json!({"$ref": "//example.com/x"}),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"$ref": "json-schema:///x"}),
    ] {
        refused(&schema, "outside of itself; nothing is fetched");
    }
    refused(&json!({ "$schema": uri }), "is not supported");
    // Identifiers are not fetched.
    check(json!({"$id": uri, "type": "string"}), &[json!("a")], &[json!(1)]);
    let fault = listener.accept().expect_err("no connection was opened");
    assert_eq!(fault.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn references_are_resolved_within_the_document() {
    let text = json!({"type": "string"});
    let (good, bad) = ([json!("a")], [json!(1)]);
    for schema in [
        json!({"$ref": "#/$defs/a", "$defs": {"a": text}}),
        json!({"$ref": "#/$defs/a%20b~1c~0d%25", "$defs": {"a b/c~d%": text}}),
        json!({"$ref": "#/$defs/%C3%BC", "$defs": {"ü": text}}),
        json!({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}}),
        json!({"$dynamicRef": "#here", "$defs": {"a": {"$dynamicAnchor": "here", "type": "string"}}}),
        json!({"$id": "http://a.example/r", "$ref": "s#/$defs/t", "$defs": {"x": {"$id": "s", "$defs": {"t": text}}}}),
        json!({"$id": "http://a.example/r", "$ref": "http://a.example/r#/$defs/t", "$defs": {"t": text}}),
        json!({"$ref": "urn:x", "$defs": {"x": {"$id": "urn:x", "$ref": "#/$defs/t", "$defs": {"t": text}}}}),
        json!({"$ref": "#/components/schemas/T", "components": {"schemas": {"T": {"$ref": "#/components/schemas/U"}, "U": text}}}),
        json!({"$ref": "#/$defs/l/prefixItems/0", "$defs": {"l": {"prefixItems": [text]}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"$ref": "#a"}],
            "definitions": {"a": {"$id": "#a", "type": "string"}}}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://a.example/r", "allOf": [{"$ref": "s"}],
            "definitions": {"a": {"id": "s", "type": "string"}}}),
        // A dynamic reference uses the outermost dynamic anchor.
        json!({"$dynamicAnchor": "t", "type": "string", "$defs": {"inner": {"$id": "urn:i", "$ref": "#/$defs/u",
            "$defs": {"u": {"allOf": [{"type": ["string", "number"]}]}, "t": {"$dynamicAnchor": "t"}}}}, "allOf": [{"$ref": "urn:i"}]}),
    ] {
        check(schema, &good, &bad);
    }
    // Property names that look like keywords.
    let schema = json!({"properties": {"$id": text, "$ref": text, "$schema": text, "$anchor": text}});
    check(
        schema,
        &[json!({"$id": "a", "$ref": "b"})],
        &[json!({"$id": 1}), json!({"$ref": 1}), json!({"$anchor": 1})],
    );
    let schema = json!({"const": {"$ref": "http://a.example", "$id": 7}});
    check(schema, &[json!({"$ref": "http://a.example", "$id": 7})], &[json!({})]);
}

#[test]
fn a_dynamic_reference_means_the_outermost_schema() {
    let tree = json!({"$id": "urn:tree", "$dynamicAnchor": "node", "type": "object",
        "properties": {"children": {"items": {"$dynamicRef": "#node"}}}});
    let strict = json!({"$id": "urn:strict", "$dynamicAnchor": "node", "$ref": "urn:tree",
        "unevaluatedProperties": false, "$defs": {"tree": tree}});
    check(strict, &[json!({"children": [{"children": []}]})], &[json!({"children": [{"daat": 1}]})]);
    let several = json!({"$defs": {
        "a": {"$id": "urn:a", "$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}},
        "b": {"$id": "urn:b", "$dynamicAnchor": "n"},
    }});
    refused(&several, "more than one target");
    let recursive = json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true,
        "type": "object", "additionalProperties": {"$recursiveRef": "#"}});
    check(recursive, &[json!({"a": {"b": {}}})], &[json!({"a": {"b": 1}})]);
    let dialect = "https://json-schema.org/draft/2019-09/schema";
    let inner = json!({"$id": "urn:i", "$recursiveAnchor": true, "items": {"$recursiveRef": "#"}});
    let outer = json!({"$schema": dialect, "$id": "urn:o", "$recursiveAnchor": true, "type": "array",
        "allOf": [{"$ref": "urn:i"}], "$defs": {"i": inner}});
    check(outer, &[json!([[[]]])], &[json!([[1]])]);
    let unmarked = json!({"$schema": dialect, "$id": "urn:o", "type": "array", "allOf": [{"$ref": "urn:i"}],
        "$defs": {"i": inner}});
    check(unmarked, &[json!([[1]])], &[json!(1)]);
}

#[test]
fn references_that_lead_nowhere_are_refused() {
    for reference in
        ["#/nowhere", "#/$defs/a/7", "#anchor", "#/const", "#/default/x", "#/$defs", "#/%zz", "#/required/0"]
    {
        let schema = json!({"properties": {"p": {"$ref": reference}}, "default": {"x": {}}, "const": {},
            "$defs": {"a": {"allOf": [true]}}, "required": ["p"]});
        if reference == "#/$defs" {
            // A map of schemas is treated as an object.
            assert!(CompiledSchema::compile(&schema).is_ok());
        } else {
            refused(&schema, "where no schema is");
        }
    }
    refused(&json!({"$ref": 7}), "where no schema is");
    let twice = json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}});
    refused(&twice, "used twice");
    refused(&json!({"$defs": {"a": {"$id": "urn:a"}, "b": {"$id": "urn:a"}}}), "used twice");
}

#[test]
fn usual_schemas_pass() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code)]
    #[serde(tag = "op")]
    enum Expr {
        Number { value: f64 },
        Add { left: Box<Expr>, right: Box<Expr> },
        Call { name: String, arguments: Vec<Expr> },
        Not { left: Option<Box<Expr>> },
    }
    let schema = schemars::schema_for!(Expr).to_value();
    let number = json!({"op": "Number", "value": 1.5});
    let sum = |left: &Value| json!({"op": "Add", "left": left, "right": number});
    let deep = (0..40).fold(number.clone(), |inner, _| sum(&inner));
    let call = json!({"op": "Call", "name": "f", "arguments": [deep, number, sum(&number)]});
    let wrong = json!({"op": "Add", "left": {"op": "Number", "value": "x"}, "right": number});
    check(schema, &[number.clone(), deep, call], &[json!(1), wrong]);

    let tree = json!({"$defs": {"node": {"type": "object", "additionalProperties": false, "required": ["name"],
        "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "children": {"type": "array",
            "items": {"$ref": "#/$defs/node"}}}}}, "$ref": "#/$defs/node"});
    let leaf = json!({"name": "leaf"});
    let wide =
        json!({"name": "root", "children": vec![json!({"name": "inner", "children": vec![leaf; 50]}); 200]});
    check(tree, &[wide], &[json!({"name": "Root"}), json!({"name": "a", "children": [{}]})]);

    let mixed = json!({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"multipleOf": 2}},
        "patternProperties": {"^x-": {"type": "string"}}, "propertyNames": {"maxLength": 5},
        "dependentRequired": {"n": ["kind"]}, "dependentSchemas": {"m": {"required": ["n"]}},
        "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["n"]}, "else": {"maxProperties": 1},
        "allOf": [{"properties": {"l": {"prefixItems": [{"type": "integer"}], "items": {"type": "string"},
            "contains": {"const": "z"}, "uniqueItems": true, "unevaluatedItems": false}}}],
        "unevaluatedProperties": false, "not": {"required": ["never"]},
        "oneOf": [{"required": ["kind"]}, {"required": ["other"]}], "anyOf": [true, false]});
    check(
        mixed,
        &[json!({"kind": "a", "n": 2, "l": [1, "z"], "x-a": "y"}), json!({"kind": "b"})],
        &[
            json!({"kind": "a"}),
            json!({"kind": "a", "n": 3}),
            json!({"kind": "b", "o": 1}),
            json!({"kind": "a", "n": 2, "l": [1]}),
        ],
    );
    // Each branch of the recursion has its own name, so the work does not double.
    let filter = json!({"$ref": "#/$defs/f", "$defs": {"f": {"oneOf": [
        {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["and"], "additionalProperties": false},
        {"type": "object", "properties": {"not": {"$ref": "#/$defs/f"}}, "required": ["not"], "additionalProperties": false},
        {"type": "object", "properties": {"eq": {"type": "string"}}, "required": ["eq"], "additionalProperties": false},
    ]}}});
    let value = (0..30).fold(json!({"eq": "a"}), |inner, _| json!({"and": [{"not": inner}]}));
    check(filter, &[value], &[json!({"and": [{}]})]);
}

#[test]
fn large_results_of_simple_schemas_are_checked() {
    let schema = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string", "pattern": "^[a-z ]+$"}}, "required": ["id"]}}}});
    let row = json!({"id": 1, "name": "a name of a row"});
    for (count, words) in [
        (2_000, "rows/2000: \"id\" is a required property"),
        (30_000, "the value does not match the schema; it is too large to list the faults"),
    ] {
        let mut rows = vec![row.clone(); count];
        check(schema.clone(), &[json!({ "rows": rows })], &[]);
        rows.push(json!({"name": "x"}));
        assert_eq!(faults(&schema, &json!({ "rows": rows })), words);
    }
}
