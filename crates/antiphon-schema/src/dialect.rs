//! The dialects of JSON Schema that are supported.

use jsonschema::Draft;
use serde_json::Value;

/// The `$schema` URIs of the supported dialects.
///
/// > Clients and servers **SHOULD** document which schema dialects they support
pub(super) const SUPPORTED: [(&str, Draft); 5] = [
    ("https://json-schema.org/draft/2020-12/schema", Draft::Draft202012),
    ("https://json-schema.org/draft/2019-09/schema", Draft::Draft201909),
    ("http://json-schema.org/draft-07/schema#", Draft::Draft7),
    ("http://json-schema.org/draft-06/schema#", Draft::Draft6),
    ("http://json-schema.org/draft-04/schema#", Draft::Draft4),
];

/// Returns the dialect of a schema.
///
/// > When a schema does not include a `$schema` field, it defaults to JSON Schema 2020-12
///
/// # Errors
///
/// The `$schema`, if it is the URI of no supported dialect.
pub(super) fn of(schema: &Value) -> Result<Draft, &Value> {
    match schema.get("$schema") {
        None => Ok(Draft::Draft202012),
        Some(dialect) => dialect.as_str().and_then(named).ok_or(dialect),
    }
}

/// Returns the dialect of a `$schema` URI. The scheme may be `http` or `https`, and an empty fragment is ignored.
pub(super) fn named(uri: &str) -> Option<Draft> {
    let bare = |uri: &'_ str| -> String {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://")).unwrap_or(uri).to_owned()
    };
    let wanted = bare(uri);
    SUPPORTED.iter().find(|(known, _)| bare(known) == wanted).map(|(_, draft)| *draft)
}

/// Returns true for dialects before 2019-09, in which an `$id` may be an anchor and siblings of `$ref` are ignored.
pub(super) fn is_old(draft: Draft) -> bool {
    matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
}
