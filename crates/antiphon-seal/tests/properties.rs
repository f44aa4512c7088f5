//! Properties of generated input.

use std::time::Duration;

use crate::common::{NOW, at, binding, outcome, sealer};
use antiphon_seal::canonical::{canonical, check};
use antiphon_seal::{Binding, Call, Principal};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// A JSON value, to be written in more than one way.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    /// `digits * 10^exponent`.
    Number(i64, i8),
    String(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        // The last digit is not zero, so that two of these are equal only if both parts are.
        (any::<i64>().prop_filter("last digit", |digits| digits % 10 != 0), any::<i8>())
            .prop_map(|(digits, exponent)| Value::Number(digits, exponent)),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            btree_map("[a-c\u{e9}\u{1d11e}]{0,3}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Writes a value plainly, or in another spelling of the same: members turned round, all escaped, numbers
/// shifted.
fn write(value: &Value, otherwise: bool) -> String {
    let join = |items: Vec<String>| items.join(if otherwise { " ,\n" } else { "," });
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(digits, exponent) if otherwise => format!("{digits}.000E{:+04}", i16::from(*exponent)),
        Value::Number(digits, exponent) => format!("{digits}0e{}", i16::from(*exponent) - 1),
        Value::String(text) => string(text, otherwise),
        Value::Array(items) => {
            format!("[{}]", join(items.iter().map(|item| write(item, otherwise)).collect()))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", string(name, otherwise), write(value, otherwise)))
                .collect();
            if otherwise {
                members.reverse();
            }
            format!("{{{}}}", join(members))
        }
    }
}

fn string(text: &str, escape_all: bool) -> String {
    let escaped: String = text
        .chars()
        .map(|character| match character {
            '"' | '\\' => format!("\\{character}"),
            _ if escape_all || character < ' ' => {
                character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            }
            _ => character.into(),
        })
        .collect();
    format!("\"{escaped}\"")
}

proptest! {
    #[test]
    fn two_spellings_have_one_form(value in value()) {
        let (plain, other) = (write(&value, false), write(&value, true));
        prop_assert_eq!(canonical(&plain).unwrap(), canonical(&other).unwrap());
        prop_assert_eq!(check(&other), Ok(()));
    }

    #[test]
    fn two_values_have_two_forms(one in value(), two in value()) {
        let forms = (canonical(&write(&one, false)).unwrap(), canonical(&write(&two, false)).unwrap());
        prop_assert_eq!(one == two, forms.0 == forms.1);
    }

    #[test]
    fn any_text_is_walked_without_panic(text in any::<String>(), json in "[\\[\\]{}:,\"\\\\u0-9a-fDd.eE+ \\-]{0,60}") {
        prop_assert_eq!(canonical(&text).err(), check(&text).err());
        prop_assert_eq!(canonical(&json).err(), check(&json).err());
    }

    #[test]
    fn what_is_sealed_opens(
        payload in vec(any::<u8>(), 0..5000),
        arguments in value(),
        (method, target, subject) in any::<(String, String, Option<String>)>(),
        tool_version in any::<u32>(),
        ttl in 0_u64..1_000_000,
        deadline in proptest::option::of(0_u64..1_000_000),
        legs in 0_u16..20,
    ) {
        let sealer = sealer(&[1, 2]);
        let principal = subject.map(Principal::user);
        let (plain, other) = (write(&arguments, false), write(&arguments, true));
        let made = Binding { method: &method, target: &target, arguments: Some(&plain), principal: principal.as_ref(), tool_version };
        let mut call = Call::begin(at(NOW), deadline.map(|seconds| at(NOW + seconds))).unwrap();
        for _ in 0..legs {
            call = call.next_leg().unwrap();
        }
        let token = sealer.seal(&call, &made, &payload, Duration::from_secs(ttl), at(NOW)).unwrap();
        let opened = sealer.open(&token, &Binding { arguments: Some(&other), ..made }, at(NOW)).unwrap();
        prop_assert_eq!(&opened.payload, &payload);
        prop_assert_eq!(opened.tool_version, tool_version);
        prop_assert_eq!((opened.call.id(), opened.call.leg()), (call.id(), legs + 1));
        prop_assert_eq!((opened.call.born(), opened.call.deadline()), (call.born(), call.deadline()));
        prop_assert!(opened.call.secret().pin(b"q").matches(&call.secret().pin(b"q")));
    }

    #[test]
    fn any_text_is_refused_without_panic(text in any::<String>(), body in "r1\\.[A-Za-z0-9_-]{0,400}") {
        let sealer = sealer(&[1]);
        for text in [text, body] {
            prop_assert_ne!(outcome(&sealer.open(&text, &binding(), at(NOW))), "ok");
        }
    }
}
