//! Regular expressions that the engine without backtracking does not support.

use super::{
    document::Document,
    fault::{PATTERN_SIZES, SchemaFault, UnsupportedPattern, quoted, short},
    keywords::Applied,
    reference::Reference,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// An occurrence of an expression that the engine cannot compile.
pub(super) struct Occurrence<'a> {
    node: usize,
    keyword: &'static str,
    pattern: &'a str,
}

impl Occurrence<'_> {
    pub(super) fn describe(&self, document: &Document<'_>) -> UnsupportedPattern {
        UnsupportedPattern {
            keyword: self.keyword,
            pattern: quoted(self.pattern),
            place: short(&format!("#{}", document.pointer(self.node))),
        }
    }
}

/// Returns the occurrences of expressions that the engine cannot compile, in the order of their schemas.
pub(super) fn unsupported<'a>(document: &Document<'a>) -> Vec<Occurrence<'a>> {
    let mut tried: HashMap<&str, bool> = HashMap::new();
    let mut is_unsupported = |pattern: &'a str| {
        let fails = || build(&json!({ "pattern": pattern }), document.draft, true).is_err();
        *tried.entry(pattern).or_insert_with(fails)
    };
    document
        .patterns()
        .filter(|(_, _, pattern)| is_unsupported(pattern))
        .map(|(node, keyword, pattern)| Occurrence { node, keyword, pattern })
        .collect()
}

/// Removes the expressions from the schema `local`, which then accepts more values and rejects no other.
///
/// # Errors
/// An expression has a mistake, or a schema that rejects values for which another one holds depends on it: `not`, `if`,
/// `oneOf`, `maxContains`.
pub(super) fn ignore(
    document: &Document<'_>,
    references: &[Reference],
    unsupported: &[Occurrence<'_>],
    local: &mut Value,
) -> Result<(), SchemaFault> {
    let is_exact = exact(document, references);
    for one in unsupported {
        if is_exact.get(one.node) != Some(&false) || !is_regular_expression(one.pattern) {
            return Err(SchemaFault::Pattern(one.describe(document)));
        }
        let schema = local.pointer_mut(&document.pointer(one.node)).and_then(Value::as_object_mut);
        let Some(schema) = schema else { continue };
        if one.keyword == "pattern" {
            schema.remove("pattern");
        } else if let Some(Value::Object(named)) = schema.get_mut("patternProperties") {
            named.remove(one.pattern);
            // Any member may be one of those that the expression matches: a sibling `additionalProperties` accepts all.
            named.entry("").or_insert_with(|| Value::Object(Map::new()));
        }
    }
    Ok(())
}

/// Returns, for each schema, `true` if values may be rejected because the schema holds.
fn exact(document: &Document<'_>, references: &[Reference]) -> Vec<bool> {
    let mut applied: Vec<Vec<usize>> = document
        .nodes
        .iter()
        .map(|node| {
            let applied = node.edges.iter().filter(|(how, _)| *how != Applied::Nowhere);
            applied.map(|(_, child)| *child).collect()
        })
        .collect();
    for reference in references {
        if let Some(applied) = applied.get_mut(reference.from) {
            applied.push(reference.to);
        }
    }
    let mut open: Vec<usize> =
        (0..document.nodes.len()).filter(|node| document.decides_otherwise(*node)).collect();
    let mut exact = vec![false; document.nodes.len()];
    while let Some(node) = open.pop() {
        if let Some(seen @ false) = exact.get_mut(node) {
            *seen = true;
            open.extend(applied.get(node).into_iter().flatten());
        }
    }
    exact
}

/// Returns `true` if the expression has no mistake: an engine with backtracking compiles it. Nothing is matched with it.
fn is_regular_expression(pattern: &str) -> bool {
    let engine = jsonschema::PatternOptions::fancy_regex();
    // Python's names of the beginning and the end, which ECMA-262 does not have.
    let pattern = pattern.replace(r"\A", "^").replace(r"\Z", "$");
    jsonschema::options().offline().with_pattern_options(engine).build(&json!({ "pattern": pattern })).is_ok()
}

/// Builds the validator. Returns it with the size limit of its regular expressions.
pub(super) fn build(
    local: &Value,
    dialect: jsonschema::Draft,
    patterns: bool,
) -> Result<(jsonschema::Validator, usize), SchemaFault> {
    let with_size = |size| {
        // The engine without backtracking, which supports neither look-around nor back references.
        let patterns = jsonschema::PatternOptions::regex().size_limit(size).dfa_size_limit(size);
        jsonschema::options()
            .with_draft(dialect)
            // > Implementations **MUST NOT** automatically dereference `$ref` values that resolve to a network URI.
            .offline()
            .with_pattern_options(patterns)
            .build(local)
            .map(|validator| (validator, size))
            .map_err(|fault| SchemaFault::Invalid(short(&fault.to_string())))
    };
    let [first, larger @ ..] = PATTERN_SIZES;
    let mut built = with_size(first);
    for size in larger.into_iter().filter(|_| patterns) {
        if built.is_err() {
            built = with_size(size);
        }
    }
    built
}

#[cfg(test)]
mod tests {
    use crate::CompiledSchema;
    use serde_json::{Value, json};

    const LOOKAHEAD: &str = r"^(?!\.)[a-z.]+@[a-z.]+$";

    #[test]
    fn a_pattern_that_is_not_supported_is_named_with_its_place() {
        for (schema, expected) in [
            (
                json!({"properties": {"a": {"pattern": LOOKAHEAD}}}),
                r##"`pattern` at `#/properties/a` ("^(?!\.)[a-z.]+@[a-z.]+$")"##,
            ),
            (json!({"items": {"pattern": "(?<=a)b"}}), r##"`pattern` at `#/items` ("(?<=a)b")"##),
            (json!({"pattern": r"(a)\1"}), r##"`pattern` at `#` ("(a)\1")"##),
            (json!({"pattern": r"a\Z"}), r##"`pattern` at `#` ("a\Z")"##),
            (
                json!({"$defs": {"x/y": {"patternProperties": {"^a": {}, "b(?=c)": {}}}}, "$ref": "#/$defs/x~1y"}),
                r##"`patternProperties` at `#/$defs/x~1y` ("b(?=c)")"##,
            ),
        ] {
            let fault = CompiledSchema::compile(&schema).unwrap_err().to_string();
            let expected = format!("the keyword {expected} cannot be used");
            assert!(fault.starts_with(&expected), "{fault}\n{expected}");
            assert!(!fault.contains("not valid"), "{fault}");
        }
        // Escapes of ECMA-262 that the engine does not have are translated.
        let translated = CompiledSchema::compile(&json!({"pattern": r"^\d\cA?[^\s]\u0061$"})).unwrap();
        assert_eq!(translated.faults(&json!("1xa")), None);
        assert!(translated.faults(&json!("xxa")).is_some());
    }

    /// Compiles the schema without the expressions, and compares the verdicts.
    fn check(schema: Value, ignored: &[&str], accepted: &[Value], rejected: &[Value]) {
        let (compiled, left_out) = CompiledSchema::compile_lenient(&schema).unwrap();
        let places: Vec<String> = left_out.iter().map(|one| one.place.clone()).collect();
        assert_eq!(places, ignored, "{schema}");
        for value in accepted {
            assert_eq!(compiled.faults(value), None, "{schema} {value}");
        }
        for value in rejected {
            assert!(compiled.faults(value).is_some(), "{schema} {value}");
        }
    }

    #[test]
    fn a_pattern_that_is_ignored_leaves_the_rest_of_the_schema() {
        let email = json!({"type": "string", "pattern": LOOKAHEAD, "maxLength": 20});
        let object = json!({"properties": {"a": email}, "required": ["a"]});
        check(
            object,
            &["#/properties/a"],
            &[json!({"a": "x"}), json!({"a": ".x@y"})],
            &[json!({}), json!({"a": 1}), json!({"a": "x".repeat(21)})],
        );
        check(
            json!({"items": email, "minItems": 1}),
            &["#/items"],
            &[json!(["x"])],
            &[json!([]), json!([1])],
        );
        check(
            json!({"$defs": {"e": email}, "properties": {"a": {"$ref": "#/$defs/e"}, "b": {"pattern": "^b$"}}}),
            &["#/$defs/e"],
            &[json!({"a": "x", "b": "b"})],
            &[json!({"a": 1}), json!({"b": "c"})],
        );
        check(
            json!({"patternProperties": {"^(?!x)": {"type": "string"}, "^n": {"type": "number"}}, "additionalProperties": false}),
            &["#"],
            &[json!({"a": 1, "x": 1, "n": 1})],
            &[json!({"n": "a"})],
        );
        check(json!({"propertyNames": {"pattern": "a(?=b)"}}), &["#/propertyNames"], &[json!({"x": 1})], &[]);
        check(json!({"items": {"pattern": r"\Aa\Z"}}), &["#/items"], &[json!(["b"])], &[]);
        check(
            json!({"anyOf": [{"pattern": r"(.)\1"}, {"type": "number"}]}),
            &["#/anyOf/0"],
            &[json!("x"), json!(1)],
            &[],
        );
        let draft_4 = "http://json-schema.org/draft-04/schema#";
        check(
            json!({"$schema": draft_4, "patternProperties": {"(?=a)": {}}, "additionalProperties": false}),
            &["#"],
            &[json!({"x": 1})],
            &[],
        );
        check(json!({"pattern": "^a"}), &[], &[json!("a")], &[json!("b")]);
    }

    #[test]
    fn a_pattern_on_which_a_rejection_depends_is_not_ignored() {
        let email = json!({"pattern": LOOKAHEAD});
        for schema in [
            json!({"not": email}),
            json!({"if": {"properties": {"a": email}}, "then": false}),
            json!({"oneOf": [{"type": "number"}, email]}),
            json!({"$defs": {"e": email}, "not": {"$ref": "#/$defs/e"}}),
            json!({"contains": email, "maxContains": 1}),
            // A mistake.
            json!({"pattern": "("}),
            json!({"pattern": "((a{1000}){1000}){1000}"}),
        ] {
            let fault = CompiledSchema::compile_lenient(&schema).unwrap_err().to_string();
            assert!(fault.contains("`pattern` at `#"), "{schema}: {fault}");
        }
        check(json!({"contains": email}), &["#/contains"], &[json!(["x"])], &[json!([])]);
        check(json!({"if": {}, "then": email}), &["#/then"], &[json!("x")], &[]);
        check(
            json!({"properties": {"not": email, "oneOf": email}}),
            &["#/properties/not", "#/properties/oneOf"],
            &[json!({"not": "x"})],
            &[],
        );
    }
}
