//! The keywords that contain subschemas. All dialects share one table; where they differ, the table has the more costly
//! interpretation.

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
