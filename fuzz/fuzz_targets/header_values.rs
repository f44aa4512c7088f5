//! Property: encoded header values decode to the same text, and no `x-mcp-header` of a schema makes a header match a body
//! with a different value.

#![no_main]

use antiphon_wire::header::{
    decode, encode,
    params::{ParamHeader, ParamHeaders},
};
use http::{HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::collections::HashSet;

fuzz_target!(|text: &str| {
    comes_back(text);
    // Base64 values have one encoding only.
    let is_encoded = text.starts_with("=?base64?") && text.ends_with("?=") && text.len() > "=?base64?=".len();
    match decode(text) {
        Some(value) if is_encoded => assert!(encode(&value) == text || encode(&value) == value, "{text:?}"),
        Some(value) => assert_eq!(value, text),
        None => assert!(is_encoded),
    }

    // The schema, the arguments, and what a header says: three JSON texts, one after the other.
    let mut texts = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (Some(Ok(schema)), Some(Ok(arguments))) = (texts.next(), texts.next()) else { return };
    let Ok(params) = ParamHeaders::of(&schema) else { return };
    let names: Vec<String> = params.iter().map(ParamHeader::header_name).collect();
    let different: HashSet<HeaderName> =
        names.iter().map(|name| HeaderName::try_from(name).expect("a token")).collect();
    assert_eq!(different.len(), names.len());

    let mirrored = params.mirror(&arguments);
    for (_, value) in &mirrored {
        HeaderValue::from_str(value).expect("what is mirrored can be sent").to_str().expect("and be read");
    }
    let said = texts.next().and_then(Result::ok);
    for param in params.iter() {
        let written = mirrored.iter().find(|(name, _)| *name == param.header_name());
        let agrees = param.check(&arguments, written.map(|(_, value)| value.as_str()));
        let value = param.path.iter().try_fold(&arguments, |value, name| value.get(name));
        assert!(agrees.is_ok() || written.is_none() && value.is_some_and(Value::is_number));
        if let Some(said) = said.as_ref().and_then(Value::as_str)
            && param.check(&arguments, Some(said)).is_ok()
        {
            let said = decode(said.trim_matches([' ', '\t'])).expect("it was read");
            let value = value.expect("a header agrees with nothing only where there is none");
            match value {
                Value::String(text) => assert_eq!(*text, said),
                Value::Bool(flag) => assert_eq!(flag.to_string(), said),
                Value::Number(number) => {
                    assert_eq!(said.parse().ok(), number.as_f64(), "{said:?} and {number}")
                }
                _ => panic!("{said:?} agrees with {value}"),
            }
        }
    }
});

fn comes_back(text: &str) {
    let encoded = encode(text);
    let header = HeaderValue::from_str(&encoded).expect("what is encoded can be sent");
    let header = header.to_str().expect("and be read");
    assert_eq!(header.trim_matches([' ', '\t']), header);
    assert_eq!(decode(header).as_deref(), Some(text));
}
