//! The keywords that contain subschemas. All dialects share one table; where they differ, the table has the more costly
//! interpretation.

use jsonschema::Draft;
use serde_json::Value;

/// The values to which a subschema is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// The same value.
    InPlace,
    /// The member of this name.
    Property(String),
    /// The members whose names match a pattern. The pattern itself is not evaluated.
    Pattern,
    /// The members without an entry in the sibling `properties`.
    OtherProperty,
    /// The names of members.
    Name,
    /// The item at this index.
    Item(usize),
    /// All items.
    EveryItem,
    /// No values: a definition.
    Nowhere,
}

/// The kind of value that a keyword has.
pub(super) enum Under {
    /// A schema, or a list of them.
    Schemas(Applied),
    /// An object of schemas by name.
    Map(Applied),
    /// The value of `properties`.
    Properties,
    /// A list of schemas by index, or one schema for all items.
    Items,
    /// Data without schemas.
    Data,
    /// The value of an unknown keyword. A reference may point into it.
    Unknown,
}

pub(super) fn under(keyword: &str) -> Under {
    use Applied::*;
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => Under::Schemas(InPlace),
        "dependentSchemas" | "dependencies" => Under::Map(InPlace),
        "properties" => Under::Properties,
        "patternProperties" => Under::Map(Pattern),
        "additionalProperties" | "unevaluatedProperties" => Under::Schemas(OtherProperty),
        "propertyNames" => Under::Schemas(Name),
        "items" | "prefixItems" => Under::Items,
        "additionalItems" | "contains" | "unevaluatedItems" => Under::Schemas(EveryItem),
        "contentSchema" => Under::Schemas(Nowhere),
        "$defs" | "definitions" => Under::Map(Nowhere),
        "const" | "enum" | "default" | "examples" | "required" | "type" | "dependentRequired" => Under::Data,
        _ => Under::Unknown,
    }
}

/// The reference keywords, whose targets are applied in place.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// The identifier keywords. They are removed after references are resolved.
pub(super) const IDENTIFIERS: [&str; 4] = ["$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];

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
