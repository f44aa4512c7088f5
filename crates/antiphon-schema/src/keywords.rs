//! What each keyword does with the schemas under it. The dialects are taken together: where they differ, the more costly
//! reading counts.

/// How a subschema is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// To the same value.
    InPlace,
    /// To the member of this name.
    Property(String),
    /// To members whose names match a pattern; which, is not looked at.
    Pattern,
    /// To every member that has no `properties` entry beside it.
    OtherProperty,
    /// To every name of a member.
    Name,
    /// To the item at this index.
    Item(usize),
    /// To every item.
    EveryItem,
    /// To nothing where it stands: a definition.
    Nowhere,
}

/// What stands under a keyword.
pub(super) enum Under {
    /// A schema, or a list of them.
    Schemas(Applied),
    /// Schemas by name.
    Map(Applied),
    /// `properties`.
    Properties,
    /// A list by index (or one schema for every item).
    Items,
    /// Data.
    Data,
    /// Nothing known. A reference may lead there.
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

/// References: the value names a schema that is applied in place.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// What says where a schema is, or under which name. Taken out once references are resolved.
pub(super) const IDENTIFIERS: [&str; 4] = ["$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];
