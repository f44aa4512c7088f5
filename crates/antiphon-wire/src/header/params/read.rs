//! The annotations of a schema, each checked against every constraint.

use super::{
    fault::{KEYWORD, Misuse, ParamHeaderFault},
    param::{ParamHeader, ParamKind},
    places::{Place, Places},
};
use serde_json::Value;
use std::collections::HashSet;

pub(super) fn read(schema: &Value) -> Result<Vec<ParamHeader>, ParamHeaderFault> {
    let mut found = Vec::new();
    let mut taken = HashSet::new();
    let mut places = Places::of(schema);
    while let Some(place) = places.next() {
        if let Some(annotation) = place.schema.get(KEYWORD) {
            let fault = |what| ParamHeaderFault::at(places.pointer(&place), what);
            let (name, kind) = read_one(&place, annotation).map_err(fault)?;
            // > **MUST** be case-insensitively unique among all `x-mcp-header` values in the `inputSchema`
            if !taken.insert(name.to_ascii_lowercase()) {
                return Err(fault(Misuse::Taken));
            }
            found.push(ParamHeader { name: name.to_owned(), path: places.path(&place), kind });
        }
    }
    Ok(found)
}

fn read_one<'a>(place: &Place<'_>, annotation: &'a Value) -> Result<(&'a str, ParamKind), Misuse> {
    // > An `x-mcp-header` annotation anywhere else makes the annotation — and thus the tool definition —
    // > invalid.
    if !place.is_property() {
        return Err(Misuse::OffChain);
    }
    let name = annotation.as_str().ok_or(Misuse::NotText)?;
    // > **MUST NOT** be empty
    if name.is_empty() {
        return Err(Misuse::Empty);
    }
    // > **MUST** match HTTP field-name token syntax (`1*tchar`
    // > **MUST NOT** contain control characters, including carriage return (CR, `\r`) or line feed (LF, `\n`)
    if !name.bytes().all(is_tchar) {
        return Err(Misuse::NotToken);
    }
    let kind = place.schema.get("type").and_then(Value::as_str).and_then(kind).ok_or(Misuse::NotPrimitive)?;
    Ok((name, kind))
}

/// Returns the kind of a parameter with this `type`.
///
/// > **MUST** only be applied to parameters with primitive types (integer, string, boolean).
///
/// An array of types is rejected, `["string", "null"]` too: `null` is not among the three types, and existing
/// clients drop a tool with such an annotation. A parameter that may be left out needs no `null`: it is left
/// out of `required`. The types behind `$ref` are not searched.
fn kind(name: &str) -> Option<ParamKind> {
    match name {
        "integer" => Some(ParamKind::Integer),
        "string" => Some(ParamKind::String),
        "boolean" => Some(ParamKind::Boolean),
        _ => None,
    }
}

/// Returns true for a `tchar` of RFC 9110, section 5.6.2.
fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
