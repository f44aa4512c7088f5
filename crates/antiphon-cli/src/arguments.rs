//! The arguments of a call: a JSON object, and `NAME=VALUE` for each further one, read by the schema of the tool.

use crate::{args::ArgumentArgs, failure::Failure};
use antiphon::{
    client::{Call, Client},
    wire::Tool,
};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use std::{collections::BTreeMap, io};

/// The arguments of the command line.
pub(crate) struct Arguments {
    /// The text of `--args`.
    object: Box<RawValue>,
    /// `NAME=VALUE`, in the order of the command line.
    words: Vec<(String, String)>,
}

impl Arguments {
    /// Reads `--args`, and separates the names from the values.
    pub(crate) fn read(args: ArgumentArgs, words: Vec<String>) -> Result<Self, Failure> {
        let pair = |word: String| match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(Failure::usage(format!(
                "`{word}` is neither NAME=VALUE nor the URL of a server, which begins with http:// or https://"
            ))),
        };
        Ok(Self { words: words.into_iter().map(pair).collect::<Result<_, _>>()?, object: json(args)? })
    }

    /// Returns the call of a prompt, whose arguments are texts.
    pub(crate) fn prompt(self, name: String) -> Result<Call, Failure> {
        let text = |_: &str, value: &str| Value::from(value);
        Call::prompt(name, self.object(text)?).map_err(|error| Failure::usage(error.to_string()))
    }

    /// Returns the call of a tool. If there are words, the list of tools says of which types they are; a tool that is not listed
    /// gets what JSON they are, or texts.
    pub(crate) async fn tool(self, name: String, client: &Client) -> Result<Call, Failure> {
        let listed = match self.words.is_empty() {
            true => None,
            false => client
                .list_tools()
                .await
                .ok()
                .and_then(|tools| tools.into_iter().find(|tool| tool.name == name)),
        };
        let schema = listed.map(|tool: Tool| tool.input_schema.to_value()).unwrap_or_default();
        let arguments = self.object(|argument, value| typed(&schema, argument, value))?;
        Call::tool(name, arguments).map_err(|error| Failure::usage(error.to_string()))
    }

    /// Returns the object with the words in it. A name that is given again adds an item to its array.
    fn object(self, read: impl Fn(&str, &str) -> Value) -> Result<Box<RawValue>, Failure> {
        if self.words.is_empty() {
            return Ok(self.object);
        }
        let failed = |fault: serde_json::Error| Failure::usage(format!("--args is no JSON object: {fault}"));
        // The texts of `--args` stay as they are: not every number is a `Value`.
        let mut members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(self.object.get()).map_err(failed)?;
        let mut given = BTreeMap::<String, Value>::new();
        for (name, text) in self.words {
            let value = read(&name, &text);
            match (given.get_mut(&name), value) {
                (None, value) => _ = given.insert(name, value),
                (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
                _ => return Err(Failure::usage(format!("the argument `{name}` is given twice"))),
            }
        }
        for (name, value) in given {
            members.insert(name, to_raw_value(&value).map_err(failed)?);
        }
        to_raw_value(&members).map_err(failed)
    }
}

/// Returns the arguments as they were written: on the command line, in a file, or on standard input.
fn json(arguments: ArgumentArgs) -> Result<Box<RawValue>, Failure> {
    let text = match arguments.arguments.as_str() {
        "-" => io::read_to_string(io::stdin())
            .map_err(|fault| Failure::usage(format!("--args: standard input: {fault}")))?,
        given => match given.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file)
                .map_err(|fault| Failure::usage(format!("--args: {file}: {fault}")))?,
            None => arguments.arguments,
        },
    };
    RawValue::from_string(text.trim().to_owned()).map_err(|fault| {
        Failure::usage(format!(
            "--args is not JSON: {fault}; single arguments are written NAME=VALUE, without --args"
        ))
    })
}

/// Reads a value by the type of its argument: a text as it is, anything else as JSON. What is no JSON is a text, which the server
/// refuses with its own words.
fn typed(schema: &Value, name: &str, text: &str) -> Value {
    let property = resolved(schema, &schema["properties"][name]);
    let json = || serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    match types(property) {
        types if types.contains(&"string") => Value::from(text),
        types if types == ["array"] => match json() {
            items @ Value::Array(_) => items,
            _ => {
                let item = resolved(schema, &property["items"]);
                let is_text = self::types(item).contains(&"string");
                Value::Array(vec![if is_text { Value::from(text) } else { json() }])
            }
        },
        _ => json(),
    }
}

/// Returns the names of the types that a schema permits; none if it names none.
fn types(schema: &Value) -> Vec<&str> {
    match (&schema["type"], &schema["enum"]) {
        (Value::String(name), _) => vec![name],
        (Value::Array(names), _) => names.iter().filter_map(Value::as_str).collect(),
        (_, Value::Array(choices)) if choices.iter().all(Value::is_string) => vec!["string"],
        _ => Vec::new(),
    }
}

/// Follows one reference into the definitions of the schema.
pub(crate) fn resolved<'a>(schema: &'a Value, property: &'a Value) -> &'a Value {
    let pointer = property["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| schema.pointer(pointer)).unwrap_or(property)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(object: &str, words: &[&str]) -> Result<Value, String> {
        let schema = json!({
            "properties": {
                "name": {"type": "string"}, "note": {"type": ["string", "null"]}, "count": {"type": "integer"},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}}, "sizes": {"type": "array", "items": {"type": "number"}},
                "kind": {"$ref": "#/$defs/Tag"}, "deep": {"type": "object"},
            },
            "$defs": {"Tag": {"enum": ["1", "b"]}},
        });
        let args = ArgumentArgs { arguments: object.to_owned() };
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let arguments = Arguments::read(args, words)
            .and_then(|arguments| arguments.object(|name, text| typed(&schema, name, text)));
        arguments.map(|text| serde_json::from_str(text.get()).unwrap()).map_err(|failure| failure.message)
    }

    #[test]
    fn words_are_read_by_the_types_of_their_arguments() {
        for (words, expected) in [
            (&["name=5", "note=null", "count=5"][..], json!({"name": "5", "note": "null", "count": 5})),
            (&["name=", "count=many"], json!({"name": "", "count": "many"})),
            (&["name=a=b", "kind=1"], json!({"name": "a=b", "kind": "1"})),
            (
                &["tags=1", "tags=b", "sizes=[1,2]", "sizes=3"],
                json!({"tags": ["1", "b"], "sizes": [1, 2, 3]}),
            ),
            (
                &["deep={\"a\":[1]}", "other=true", "more=yes"],
                json!({"deep": {"a": [1]}, "other": true, "more": "yes"}),
            ),
        ] {
            assert_eq!(read("{}", words), Ok(expected), "{words:?}");
        }
        assert_eq!(read(r#"{"name": "x", "big": 1}"#, &["name=y"]), Ok(json!({"name": "y", "big": 1})));
    }

    #[test]
    fn words_that_are_none_are_refused() {
        for (object, words, expected) in [
            ("{}", &["name"][..], "`name` is neither NAME=VALUE nor"),
            ("{}", &["=5"], "`=5` is neither"),
            ("{}", &["count=1", "count=2"], "the argument `count` is given twice"),
            ("[]", &["count=1"], "--args is no JSON object"),
            ("name=x", &[], "single arguments are written NAME=VALUE, without --args"),
        ] {
            let refused = read(object, words).unwrap_err();
            assert!(refused.contains(expected), "{words:?}: {refused}");
        }
    }
}
