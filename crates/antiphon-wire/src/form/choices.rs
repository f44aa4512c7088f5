//! The faults of choices that a program makes at run time.

use super::field::{Choice, FieldKind, FormField};
use crate::members::name_used_twice;

/// Returns the first fault of the fields' choices, with the name of the field.
pub(super) fn fault_of(fields: &[FormField]) -> Option<String> {
    fields.iter().find_map(|field| match &field.kind {
        FieldKind::One { choices, default } => fault(&field.name, choices, default.as_slice()),
        FieldKind::Many { choices, default, .. } => {
            fault(&field.name, choices, default.as_deref().unwrap_or_default())
        }
        _ => None,
    })
}

fn fault(field: &str, choices: &[Choice], defaults: &[String]) -> Option<String> {
    if choices.is_empty() {
        return Some(format!("field `{field}` has no choices"));
    }
    let values = || choices.iter().map(|choice| choice.value.as_str());
    if let Some(twice) = name_used_twice(values()) {
        return Some(format!("field `{field}` has the choice `{twice}` twice"));
    }
    let foreign = defaults.iter().find(|default| !values().any(|value| value == default.as_str()))?;
    Some(format!("the default `{foreign}` of field `{field}` is not among its choices"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FormSchema;
    use serde_json::json;
    use std::borrow::Cow;

    #[test]
    fn choices_are_made_of_many_types() {
        let names = vec!["a".to_owned(), "b".to_owned()];
        let expected = FormField::one("x", ["a", "b"]);
        for field in [
            FormField::one("x", &names),
            FormField::one("x", names.iter().map(String::as_str)),
            FormField::one("x", ["a", "b"].iter()),
            FormField::one("x", names.iter().map(Cow::from)),
            FormField::one("x", names.iter().map(Choice::from)),
            FormField::one("x", names),
        ] {
            assert_eq!(field, expected);
        }
        let rows: Vec<(String, String)> = vec![("a".to_owned(), "Ay".to_owned())];
        assert_eq!(FormField::many("x", rows), FormField::many("x", [("a", "Ay")]));
    }

    #[test]
    fn a_choice_that_nobody_could_make_is_a_fault() {
        let none: [&str; 0] = [];
        for (field, expected) in [
            (FormField::one("file", none), Some("field `file` has no choices")),
            (FormField::many("file", none), Some("field `file` has no choices")),
            (FormField::one("file", ["a", "b", "a"]), Some("field `file` has the choice `a` twice")),
            (
                FormField::many("file", [("a", "x"), ("a", "y")]),
                Some("field `file` has the choice `a` twice"),
            ),
            (FormField::one("file", [("a", "x"), ("b", "x")]), None),
        ] {
            let built = FormSchema::new(vec![field]);
            assert_eq!(built.unaskable().as_deref(), expected);
            let read: FormSchema = serde_json::from_str(built.text()).unwrap();
            assert_eq!(read.unaskable().as_deref(), expected);
            // A peer may send it.
            assert_eq!(read.beyond_subset(), None);
        }
    }

    #[test]
    fn a_default_is_one_of_the_choices() {
        let read = |property| {
            let schema = json!({"type": "object", "properties": {"file": property}});
            let schema: FormSchema = serde_json::from_value(schema).unwrap();
            schema.unaskable()
        };
        let fault = Some("the default `c` of field `file` is not among its choices".to_owned());
        assert_eq!(read(json!({"type": "string", "enum": ["a", "b"], "default": "b"})), None);
        assert_eq!(read(json!({"type": "string", "enum": ["a", "b"], "default": "c"})), fault);
        let items = json!({"type": "string", "enum": ["a", "b"]});
        assert_eq!(read(json!({"type": "array", "items": items, "default": ["a", "c"]})), fault);
    }
}
