//! Tests of regular expressions that the engine does not have.

use super::CompiledSchema;
use serde_json::json;

#[test]
fn a_pattern_that_is_not_supported_is_named_with_its_place() {
    for (schema, expected) in [
        (
            json!({"properties": {"a": {"pattern": r"^(?!\.)[a-z]+$"}}}),
            r#""^(?!\.)[a-z]+$" of `pattern` at `#/properties/a`"#,
        ),
        (json!({"items": {"pattern": "(?<=a)b"}}), r#""(?<=a)b" of `pattern` at `#/items`"#),
        (json!({"pattern": r"(a)\1"}), r#""(a)\1" of `pattern` at `#`"#),
        (json!({"pattern": r"a\Z"}), r#""a\Z" of `pattern` at `#`"#),
        (
            json!({"$defs": {"x/y": {"patternProperties": {"^a": {}, "b(?=c)": {}}}}, "$ref": "#/$defs/x~1y"}),
            r#""b(?=c)" of `patternProperties` at `#/$defs/x~1y`"#,
        ),
    ] {
        let fault = CompiledSchema::compile(&schema).unwrap_err().to_string();
        let expected = format!("the regular expression {expected} is not supported");
        assert!(fault.starts_with(&expected), "{fault}\n{expected}");
        assert!(!fault.contains("not valid"), "{fault}");
    }
    // Escapes of ECMA-262 that the engine does not have are translated.
    let translated = CompiledSchema::compile(&json!({"pattern": r"^\d\cA?[^\s]\u0061$"})).unwrap();
    assert_eq!(translated.faults(&json!("1xa")), None);
    assert!(translated.faults(&json!("xxa")).is_some());
}
