//! `x-mcp-header`: what a schema may name, what a client sends, what a server compares.

use antiphon_wire::header::params::{ParamHeaders, ParamKind};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The names and paths that a valid schema gives.
fn names(schema: &Value) -> Vec<(String, String, ParamKind)> {
    let params = ParamHeaders::of(schema).unwrap_or_else(|fault| panic!("{schema}: {fault}"));
    params.iter().map(|param| (param.header_name(), param.path.join("."), param.kind)).collect()
}

fn refused(schema: Value, words: &str) {
    let fault = ParamHeaders::of(&schema).expect_err(&schema.to_string()).to_string();
    assert!(fault.contains(words), "{schema}: {fault}");
}

/// A schema with the property `p`.
fn with(property: Value) -> Value {
    json!({"type": "object", "properties": {"p": property}})
}

/// One parameter `p` of this type.
fn params(kind: &str) -> ParamHeaders {
    ParamHeaders::of(&with(json!({"type": kind, "x-mcp-header": "P"}))).unwrap()
}

#[test]
fn properties_are_found_at_every_depth() {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "dry": {"type": "boolean", "x-mcp-header": "Method"},
            "page": {"type": "object", "properties": {
                "properties": {"type": "object", "properties": {
                    "limit": {"type": "integer", "x-mcp-header": "x!#$%&'*+-.^_`|~9"},
                }},
            }},
        },
    });
    let expected = [
        ("Mcp-Param-Method", "dry", ParamKind::Boolean),
        ("Mcp-Param-Region", "region", ParamKind::String),
        ("Mcp-Param-x!#$%&'*+-.^_`|~9", "page.properties.limit", ParamKind::Integer),
    ];
    let expected = expected.map(|(name, path, kind)| (name.to_owned(), path.to_owned(), kind));
    assert_eq!(names(&schema), expected);
}

#[test]
fn data_is_no_annotation() {
    let stray = json!({"x-mcp-header": 7, "properties": {"a": {"x-mcp-header": ""}}});
    for schema in [
        json!(true),
        json!({}),
        json!({"const": stray}),
        json!({"enum": [stray]}),
        json!({"default": stray, "examples": [stray, [stray]]}),
        with(json!({"type": "object", "default": stray, "const": stray})),
        // Names of properties, of patterns and of definitions are no keywords.
        json!({"properties": {"x-mcp-header": {"type": "array"}}}),
        json!({"patternProperties": {"x-mcp-header": {"type": "array"}}}),
        json!({"$defs": {"x-mcp-header": true, "d": {"properties": {"x-mcp-header": {}}}}}),
        json!({"dependentSchemas": {"x-mcp-header": {}}, "dependencies": {"x-mcp-header": ["a"]}}),
        json!({"dependentRequired": {"x-mcp-header": ["a"]}, "required": ["x-mcp-header"]}),
    ] {
        assert_eq!(names(&schema), [], "{schema}");
    }
    // Names that are data keywords elsewhere are properties here.
    let schema = json!({"properties": {"const": {"type": "string", "x-mcp-header": "A"}}});
    assert_eq!(names(&schema).len(), 1);
}

#[test]
fn an_annotation_off_the_chain_spoils_the_tool() {
    let good = json!({"type": "string", "x-mcp-header": "A"});
    let inside = json!({"properties": {"a": good}});
    for keyword in [
        "items",
        "contains",
        "unevaluatedItems",
        "additionalItems",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
        "extends",
    ] {
        for schema in [&good, &inside] {
            refused(json!({ keyword: schema }), "by `properties` alone");
            refused(with(json!({ keyword: schema })), "by `properties` alone");
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf", "prefixItems", "items"] {
        refused(json!({ keyword: [true, inside] }), "by `properties` alone");
    }
    for keyword in ["$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"] {
        refused(json!({ keyword: {"x": inside} }), "by `properties` alone");
        refused(json!({ keyword: {"properties": good} }), "by `properties` alone");
    }
    refused(json!({"type": "string", "x-mcp-header": "Root"}), "by `properties` alone");
    // Where a reference may lead that only its author knows of.
    refused(json!({"components": {"schemas": {"S": good}}}), "by `properties` alone");
    refused(json!({"items": {"not": good}}), "at `/items/not`");
}

#[test]
fn names_are_tokens() {
    refused(with(json!({"type": "string", "x-mcp-header": ""})), "must not be empty");
    for name in ["My Region", "Region:Primary", "Région", "Region\t1", "a\r\nX: y", "a/b", "a\u{7f}", "\"a\""]
    {
        refused(with(json!({"type": "string", "x-mcp-header": name})), "must be an HTTP token");
    }
    for name in [json!(null), json!(7), json!(["A"]), json!({"name": "A"}), json!(true)] {
        refused(with(json!({"type": "string", "x-mcp-header": name})), "must be a string");
    }
}

#[test]
fn names_are_unique_without_regard_to_case() {
    for (one, other) in [("Region", "Region"), ("Region", "REGION"), ("a.b", "A.B")] {
        let property = |name| json!({"type": "string", "x-mcp-header": name});
        refused(json!({"properties": {"a": property(one), "b": property(other)}}), "used twice");
        let nested = json!({"properties": {"b": property(other)}});
        refused(json!({"properties": {"a": property(one), "c": nested}}), "used twice");
    }
}

#[test]
fn only_three_types_are_mirrored() {
    let types = [json!("number"), json!("object"), json!("array"), json!("null"), json!("text"), json!(3)];
    let lists = [json!(["string", "null"]), json!(["string"]), json!([])];
    for kind in types.into_iter().chain(lists) {
        refused(with(json!({"type": kind, "x-mcp-header": "A"})), "whose `type` is");
    }
    refused(with(json!({"x-mcp-header": "A"})), "whose `type` is");
    refused(with(json!({"enum": ["a"], "x-mcp-header": "A"})), "whose `type` is");
    refused(with(json!({"$ref": "#/$defs/A", "x-mcp-header": "A"})), "whose `type` is");
}

#[test]
fn a_fault_names_the_place_and_quotes_nothing() {
    let long = "x".repeat(1000);
    let schema = json!({"properties": {"a/b\n~": {"type": "string", "x-mcp-header": "se cret"}}});
    let fault = ParamHeaders::of(&schema).unwrap_err().to_string();
    assert!(fault.contains("`/properties/a~1b\\n~0`"), "{fault}");
    assert!(!fault.contains("se cret"), "{fault}");
    let schema = json!({"properties": { long: {"type": "string", "x-mcp-header": ""}}});
    assert!(ParamHeaders::of(&schema).unwrap_err().to_string().len() < 300);
}

#[test]
fn a_deep_schema_is_searched_without_recursion() {
    let mut schema = json!({"type": "string", "x-mcp-header": "A"});
    for _ in 0..20_000 {
        // By hand: the macro would copy what is inside, with recursion.
        let properties = Map::from_iter([("p".to_owned(), schema)]);
        schema = Value::Object(Map::from_iter([("properties".to_owned(), Value::Object(properties))]));
    }
    let params = ParamHeaders::of(&schema).unwrap();
    assert_eq!(params.iter().next().unwrap().path.len(), 20_000);
    // Dropping it would recurse.
    std::mem::forget(schema);
}

/// Checks the header that is sent for a value, and that the server accepts this header.
fn mirrored(kind: &str, value: Value, header: &str) {
    let params = params(kind);
    let arguments = json!({"p": value});
    assert_eq!(params.mirror(&arguments), [("Mcp-Param-P".to_owned(), header.to_owned())]);
    agree(kind, value, Some(header));
}

fn agree(kind: &str, value: Value, header: Option<&str>) {
    let params = params(kind);
    let result = params.iter().next().unwrap().check(&json!({"p": value}), header);
    assert!(result.is_ok(), "{value} and {header:?}: {result:?}");
}

fn differ(kind: &str, value: Value, header: Option<&str>, words: &str) {
    let params = params(kind);
    let result = params.iter().next().unwrap().check(&json!({"p": value}), header);
    let fault = result.expect_err(&format!("{value} and {header:?}"));
    assert_eq!(fault.header_name(), "Mcp-Param-P");
    assert!(fault.to_string().contains(words), "{value} and {header:?}: {fault}");
}

#[test]
fn values_are_encoded_as_the_specification_shows() {
    for (value, header) in [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
        ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
        ("us west 1", "us west 1"),
        ("日本語", "=?base64?5pel5pys6Kqe?="),
        ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
        ("\tindented", "=?base64?CWluZGVudGVk?="),
        ("", "=?base64??="),
        ("a\tb", "a\tb"),
        ("a\0b", "=?base64?YQBi?="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
    ] {
        mirrored("string", json!(value), header);
    }
    mirrored("boolean", json!(true), "true");
    mirrored("boolean", json!(false), "false");
    for (value, header) in [
        (json!(42), "42"),
        (json!(-7), "-7"),
        (json!(0), "0"),
        (json!(-0.0), "0"),
        (json!(42.0), "42"),
        (json!(1e2), "100"),
        (json!(9_007_199_254_740_991_u64), "9007199254740991"),
        (json!(-9_007_199_254_740_991_i64), "-9007199254740991"),
    ] {
        mirrored("integer", value, header);
    }
}

#[test]
fn the_sentinel_is_read_strictly() {
    agree("string", json!("Hello"), Some("=?base64?SGVsbG8=?="));
    // What could have been plain may be base64 all the same.
    agree("string", json!("us-west1"), Some("=?base64?dXMtd2VzdDE=?="));
    agree("integer", json!(42), Some("=?base64?NDI=?="));
    for header in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?=", "=?base64?SGVsbG9=?="] {
        differ("string", json!("Hello"), Some(header), "not the base64 of a text");
    }
    // Anything else is a literal.
    for header in ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?=", "SGVsbG8=?=", "=?base64?="] {
        agree("string", json!(header), Some(header));
        differ("string", json!("Hello"), Some(header), "does not match");
    }
    // White space is the transport's; what has its own is encoded.
    agree("string", json!("foo"), Some(" foo\t"));
    differ("string", json!(" foo"), Some(" foo"), "does not match");
    agree("string", json!(""), Some(""));
}

#[test]
fn characters_that_no_header_has_are_refused() {
    for header in ["caf\u{e9}", "a\nb", "a\rb", "a\0b", "a\u{7f}b"] {
        differ("string", json!(header), Some(header), "visible ASCII");
    }
}

#[test]
fn text_is_compared_to_the_letter() {
    for header in ["US-WEST1", "us-west", "us-west1;", "\"us-west1\""] {
        differ("string", json!("us-west1"), Some(header), "does not match");
    }
    differ("string", json!("42"), Some("42.0"), "does not match");
    differ("boolean", json!(true), Some("TRUE"), "does not match");
    differ("boolean", json!(true), Some("1"), "does not match");
    differ("boolean", json!(false), Some("true"), "does not match");
}

#[test]
fn integers_are_compared_by_value() {
    for header in ["42", "42.0", "42.000", "4.2e1", "4200E-2", "0.42e+2", "420e-1"] {
        agree("integer", json!(42), Some(header));
        agree("integer", json!(42.0), Some(header));
        differ("integer", json!(-42), Some(header), "does not match");
        differ("integer", json!(43), Some(header), "does not match");
    }
    agree("integer", json!(100), Some("1e2"));
    agree("integer", json!(1e2), Some("100"));
    for header in ["0", "-0", "0.0", "-0e9", "0e99999999999999999999"] {
        agree("integer", json!(0), Some(header));
        agree("integer", json!(-0.0), Some(header));
    }
    for header in
        ["", "-", "042", "+42", "42.", ".42e2", "42e", "42e+", "0x2a", "4 2", "42a", "٤٢", "NaN", "4_2"]
    {
        let words = if header.is_ascii() { "does not match" } else { "visible ASCII" };
        differ("integer", json!(42), Some(header), words);
    }
    // Doubles cannot tell these apart.
    differ("integer", json!(9_007_199_254_740_991_u64), Some("9007199254740991.1"), "does not match");
    differ("integer", json!(1), Some("1.00000000000000000001"), "does not match");
    let huge = format!("1e{}", i64::MIN);
    for header in ["1e99999999999999999999", "1e-99999999999999999999", "10e9223372036854775807", &huge] {
        differ("integer", json!(1), Some(header), "does not match");
    }
}

#[test]
fn unsafe_integers_are_neither_mirrored_nor_compared() {
    for text in
        ["9007199254740992", "-9007199254740992", "18446744073709551615", "1e300", "18446744073709551617"]
    {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(params("integer").mirror(&json!({"p": value})), []);
        differ("integer", value.clone(), None, "cannot be mirrored");
        differ("integer", value, Some(text), "cannot be mirrored");
    }
}

#[test]
fn no_value_no_header() {
    let params = params("string");
    let param = params.iter().next().unwrap();
    for arguments in [json!({}), json!({"p": null}), json!(null), json!([]), json!("p"), json!({"P": "x"})] {
        assert_eq!(params.mirror(&arguments), []);
        assert!(param.check(&arguments, None).is_ok(), "{arguments}");
        for header in ["x", "", "null"] {
            let fault = param.check(&arguments, Some(header)).unwrap_err().to_string();
            assert!(fault.contains("no value in the body"), "{arguments}: {fault}");
        }
    }
    differ("string", json!("x"), None, "is missing");
    differ("integer", json!(0), None, "is missing");
    differ("boolean", json!(false), None, "is missing");
    differ("string", json!(""), None, "is missing");
}

#[test]
fn the_value_is_read_at_the_exact_path() {
    let leaf = json!({"type": "string", "x-mcp-header": "Deep"});
    let schema = json!({"properties": {"a": {"properties": {"b.c": {"properties": {"/": leaf}}}}}});
    let params = ParamHeaders::of(&schema).unwrap();
    assert_eq!(params.iter().next().unwrap().path, ["a", "b.c", "/"]);
    let header = |value: Value| params.mirror(&value).pop().map(|(_, value)| value);
    assert_eq!(header(json!({"a": {"b.c": {"/": "x"}}})).as_deref(), Some("x"));
    for arguments in [
        json!({"a": {"b": {"c": {"/": "x"}}}}),
        json!({"a": [{"b.c": {"/": "x"}}]}),
        json!({"a": "b.c"}),
        json!({"a": null}),
        json!({"/": "x"}),
    ] {
        assert_eq!(header(arguments), None);
    }
}

#[test]
fn values_of_another_type_are_left_to_the_schema() {
    for value in [json!("x"), json!(7), json!(true), json!(3.25)] {
        for kind in ["string", "integer", "boolean"] {
            let sent = params(kind).mirror(&json!({"p": value})).pop().unwrap().1;
            agree(kind, value.clone(), Some(&sent));
            differ(kind, value.clone(), None, "is missing");
        }
    }
    for value in [json!([]), json!({}), json!(["x"])] {
        assert_eq!(params("string").mirror(&json!({"p": value})), []);
        agree("string", value.clone(), None);
        differ("string", value, Some("x"), "no value in the body");
    }
}

#[test]
fn a_mismatch_quotes_no_value() {
    let params = params("string");
    let param = params.iter().next().unwrap();
    for header in [Some("secret-h"), Some("=?base64?secret-h?="), Some("secret-h\u{1}"), None] {
        let fault = param.check(&json!({"p": "secret-b"}), header).unwrap_err();
        assert!(!format!("{fault} {fault:?}").contains("secret"), "{fault}");
    }
}

/// Arguments of the schema below, with values of any kind.
fn arguments() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<i32>().prop_map(|number| json!(f64::from(number))),
        any::<f64>().prop_map(|number| json!(number)),
        (-100_i32..100).prop_map(|number| json!(number)),
    ];
    let value = prop_oneof![
        any::<String>().prop_map(Value::String),
        "[ -~\t]{0,12}".prop_map(Value::String),
        "=[?]base64[?][A-Za-z0-9+/=]{0,8}[?]=".prop_map(Value::String),
        any::<bool>().prop_map(Value::Bool),
        number,
        Just(Value::Null),
        Just(json!(["x"])),
    ];
    proptest::collection::vec(proptest::option::of(value), 4).prop_map(|values| {
        let named = ["a", "b", "c", "d"].into_iter().zip(values);
        let mut map: Map<String, Value> =
            named.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        if let Some(inner) = map.remove("d") {
            map.insert("d".to_owned(), json!({"e": inner}));
        }
        Value::Object(map)
    })
}

/// Integers that cannot be mirrored are refused; all else is.
fn is_unsafe(value: Option<&Value>) -> bool {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    let float = value.and_then(Value::as_f64);
    float.is_some_and(|float| float.fract() == 0.0 && float.abs() > SAFE)
}

proptest! {
    #[test]
    fn what_is_mirrored_agrees(arguments in arguments()) {
        let property = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
        let params = ParamHeaders::of(&json!({"properties": {
            "a": property("string", "A"), "b": property("integer", "B"), "c": property("boolean", "C"),
            "d": {"properties": {"e": property("string", "D-E")}},
        }})).unwrap();
        let sent = params.mirror(&arguments);
        for (name, value) in &sent {
            prop_assert!(name.starts_with("Mcp-Param-"));
            prop_assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')), "{value:?}");
            prop_assert_eq!(value.trim(), value);
        }
        for param in params.iter() {
            let header = sent.iter().find(|(name, _)| *name == param.header_name()).map(|(_, value)| &**value);
            let pointer = format!("/{}", param.path.join("/"));
            let result = param.check(&arguments, header);
            if is_unsafe(arguments.pointer(&pointer)) {
                prop_assert!(header.is_none() && result.is_err());
            } else {
                prop_assert!(result.is_ok(), "{:?} {:?}", header, result);
                // And nothing but what was sent: a header more or less is noticed.
                let other = header.map_or(Some("?"), |_| None);
                prop_assert!(param.check(&arguments, other).is_err());
            }
        }
    }

    #[test]
    fn any_schema_and_any_header_are_answered(name in any::<String>(), header in any::<String>()) {
        let schema = json!({"properties": {"p": {"type": "string", "x-mcp-header": name}}});
        if let Ok(params) = ParamHeaders::of(&schema) {
            let _ = params.iter().next().unwrap().check(&json!({"p": 7}), Some(&header));
            let same = params.iter().next().unwrap().check(&json!({"p": header}), Some(&header));
            let plain = header.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            prop_assert_eq!(same.is_ok(), plain && header.trim() == header && !header.starts_with("=?base64?"));
        }
    }
}
