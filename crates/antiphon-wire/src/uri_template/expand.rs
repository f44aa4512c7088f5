//! The expansion of a template.

use super::{
    parts::{InvalidTemplate, Operator, Part, Variable, fault},
    percent::encoded,
};
use serde_json::{Map, Value};

pub(super) fn expand(parts: &[Part], values: &Map<String, Value>) -> Result<String, InvalidTemplate> {
    let mut uri = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => uri.push_str(text),
            Part::Expression(operator, variables) => {
                let mut is_first = true;
                for variable in variables {
                    let given = values.get(&variable.name).unwrap_or(&Value::Null);
                    for text in texts(*operator, variable, given)? {
                        match operator.first {
                            first if is_first => uri.extend(first.map(char::from)),
                            _ => uri.push(char::from(operator.separator)),
                        }
                        uri.push_str(&text);
                        is_first = false;
                    }
                }
            }
        }
    }
    Ok(uri)
}

/// Returns the encoded texts of one variable: one for each item of a list with `*`, none without a value.
fn texts(operator: Operator, variable: &Variable, given: &Value) -> Result<Vec<String>, InvalidTemplate> {
    let encode = |value: &Value| match value {
        Value::String(text) => Ok(encoded(text, operator.is_reserved)),
        Value::Number(_) | Value::Bool(_) => Ok(encoded(&value.to_string(), operator.is_reserved)),
        _ => fault(format!(
            "the value of `{}` is neither a text, number or boolean nor a list of them",
            variable.name
        )),
    };
    let named = |text: String| match (operator.is_named, text.is_empty() && operator.separator == b';') {
        (false, _) => text,
        (true, true) => variable.name.clone(),
        (true, false) => format!("{}={text}", variable.name),
    };
    match given {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(encode).collect::<Result<_, _>>()?;
            match items.as_slice() {
                [] => Ok(Vec::new()),
                _ if variable.is_list => Ok(items.into_iter().map(named).collect()),
                _ => Ok(vec![named(items.join(","))]),
            }
        }
        one => Ok(vec![named(encode(one)?)]),
    }
}
