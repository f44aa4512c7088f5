//! Validation against JSON Schemas from untrusted peers, with a bound on the work of each validation.
//!
//! Both the schema and the validated data may come from a peer. Before a schema is compiled, it is parsed into a graph
//! (`document`), its references are resolved and replaced by local pointers (`reference`), and an upper bound on the
//! validation work is computed (`cost`). The schema that the validator compiles has one base URI, no anchors, and no
//! references to other documents.
//!
//! > Composition keywords [...] can be expensive to validate. Implementations **SHOULD** apply reasonable bounds
//!
//! Dialects: 2020-12 (the default), 2019-09, draft-07, draft-06, draft-04.

mod cost;
mod document;
mod fault;
mod keywords;
mod patterns;
mod reference;
mod work;

pub use fault::{SchemaFault, UnsupportedPattern};

use cost::Costs;
use document::Document;
use fault::{MAX_INSTANCE_DEPTH, PATTERN_BYTES_PER_STEP};
use patterns::build;
use serde_json::Value;
use work::Verdict;

/// A compiled schema.
#[derive(Debug)]
pub struct CompiledSchema {
    validator: jsonschema::Validator,
    costs: Costs,
}

impl CompiledSchema {
    /// Parses, checks and compiles a schema. References to other documents are not fetched.
    ///
    /// # Errors
    ///
    /// The schema is invalid, has an unsupported dialect, refers to another document, or could cost too much. The fault has a
    /// message for the schema's author.
    pub fn compile(schema: &Value) -> Result<Self, SchemaFault> {
        Self::compile_or_ignore(schema, false).map(|(compiled, _)| compiled)
    }

    /// Compiles a schema as [`compile`](Self::compile) does, but ignores regular expressions that are not supported, such as
    /// those with look-around, and returns them. The compiled schema accepts all values that the schema accepts.
    ///
    /// # Errors
    ///
    /// The same as those of `compile`; also a regular expression that cannot be ignored, because `not`, `if`, `oneOf` or
    /// `maxContains` depends on it.
    pub fn compile_lenient(schema: &Value) -> Result<(Self, Vec<UnsupportedPattern>), SchemaFault> {
        Self::compile_or_ignore(schema, true)
    }

    fn compile_or_ignore(
        schema: &Value,
        is_lenient: bool,
    ) -> Result<(Self, Vec<UnsupportedPattern>), SchemaFault> {
        // > Schemas **MUST** be valid according to their declared or default dialect
        let dialect = keywords::of(schema).map_err(SchemaFault::unsupported_dialect)?;
        document::check_size(schema)?;
        let mut document = Document::read(schema, dialect)?;
        let references = reference::resolve(&mut document)?;
        let mut costs = Costs::of(&document, &references)?;
        let mut local = reference::rewrite(&document, &references)?;
        let mut ignored = Vec::new();
        let (validator, pattern_size) = match build(&local, dialect, document.has_patterns()) {
            Ok(built) => built,
            Err(fault) => {
                let unsupported = patterns::unsupported(&document);
                let Some(first) = unsupported.first() else { return Err(fault) };
                if !is_lenient {
                    return Err(SchemaFault::Pattern(first.describe(&document)));
                }
                patterns::ignore(&document, &references, &unsupported, &mut local)?;
                ignored.extend(unsupported.iter().map(|one| one.describe(&document)));
                build(&local, dialect, document.has_patterns())?
            }
        };
        costs.steps_per_byte = (pattern_size / PATTERN_BYTES_PER_STEP) as u64;
        Ok((Self { validator, costs }, ignored))
    }

    /// Validates a value. Returns `None` if the value is valid, otherwise up to five faults as one sentence. A value that is
    /// too costly to validate is invalid.
    pub fn faults(&self, value: &Value) -> Option<String> {
        let lists_faults = match self.costs.weigh(value) {
            Verdict::TooDeep => {
                return Some(format!("the value nests deeper than {MAX_INSTANCE_DEPTH} levels"));
            }
            Verdict::TooCostly => {
                return Some("the value is too costly to check against the schema".to_owned());
            }
            Verdict::WithoutFaults => false,
            Verdict::WithFaults => true,
        };
        if self.validator.is_valid(value) {
            return None;
        }
        if !lists_faults {
            return Some(
                "the value does not match the schema; it is too large to list the faults".to_owned(),
            );
        }
        let describe = |fault: jsonschema::ValidationError<'_>| match fault.instance_path().as_str() {
            "" => fault.to_string(),
            path => format!("{}: {fault}", path.trim_start_matches('/')),
        };
        let faults: Vec<String> = self.validator.iter_errors(value).take(5).map(describe).collect();
        Some(faults.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::{fault::*, *};
    use proptest::prelude::*;
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
        let link =
            |at: usize| if at < length { json!({"$ref": format!("#/$defs/d{at}")}) } else { last.clone() };
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
        let schema = json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true});
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
            refused(
                &schema,
                "is not supported; supported are https://json-schema.org/draft/2020-12/schema, ",
            );
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
        for reference in [
            "#/nowhere",
            "#/$defs/a/7",
            "#anchor",
            "#/const",
            "#/default/x",
            "#/$defs",
            "#/%zz",
            "#/required/0",
        ] {
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
        let wide = json!({"name": "root", "children": vec![json!({"name": "inner", "children": vec![leaf; 50]}); 200]});
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

    // Schemas and values that would cost too much: they are refused, or the work is bounded.

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
        let long =
            chain(2 * MAX_CHAIN as usize, |_, next| json!({"allOf": [next]}), json!({"type": "object"}));
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
        let schema = json!({"$ref": "#/$defs/e", "$defs": {"e": {"anyOf": [{"type": "integer"}, {"anyOf": variants}]}}});
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
        let wrap = |levels: usize, inner: Value| {
            (0..levels).fold(inner, |inner, _| json!({"properties": {"x": inner}}))
        };
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
        for branch in
            [json!({"anyOf": [{"type": "number"}, link]}), json!({"oneOf": [{"type": "number"}, link]})]
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
        let twice =
            |next: Value| json!({"allOf": [{"properties": {"x": next}}, {"properties": {"x": next}}]});
        let weigh =
            |schema: &Value, value: &Value| CompiledSchema::compile(schema).unwrap().costs.weigh(value);
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

    // Properties that hold for generated schemas and values.

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
                pair.clone().prop_map(
                    |(one, other)| json!({"properties": {"x": one}, "additionalProperties": other})
                ),
                pair.clone().prop_map(|(one, other)| json!({"allOf": [one, other]})),
                pair.clone()
                    .prop_map(|(one, other)| json!({"anyOf": [one, other], "unevaluatedProperties": false})),
                pair.clone().prop_map(|(one, other)| json!({"oneOf": [one, other]})),
                pair.clone().prop_map(|(one, other)| json!({"prefixItems": [one], "items": other})),
                pair.prop_map(
                    |(one, other)| json!({"if": one, "then": other, "patternProperties": {"^y": true}})
                ),
                inner.clone().prop_map(|one| json!({"not": one, "unevaluatedItems": false})),
                inner.prop_map(
                    |one| json!({"dependentSchemas": {"x": one}, "propertyNames": {"maxLength": 3}})
                ),
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
}
