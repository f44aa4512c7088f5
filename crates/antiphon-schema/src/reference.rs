//! Resolution of references, and their replacement by local pointers.

use super::{
    document::Document,
    fault::{MAX_SCHEMA_SIZE, SchemaFault, quoted},
    keywords::{self, IDENTIFIERS, REFERENCES, Under, under},
};
use jsonschema::Draft;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A resolved reference from one node to another.
pub(super) struct Reference {
    pub(super) from: usize,
    keyword: &'static str,
    pub(super) to: usize,
}

/// Resolves all references, including those in targets of references.
pub(super) fn resolve(document: &mut Document<'_>) -> Result<Vec<Reference>, SchemaFault> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(node) = document.nodes.get(from) {
        let value = node.value;
        for keyword in REFERENCES {
            let Some(reference) = value.get(keyword) else { continue };
            let reference =
                reference.as_str().ok_or_else(|| SchemaFault::Unresolved(format!("`{keyword}`")))?;
            let to = lookup(document, from, reference)?;
            let to = match keyword {
                "$dynamicRef" => outermost_anchor(document, to, reference)?,
                "$recursiveRef" => outermost_root(document, to, reference)?,
                _ => to,
            };
            found.push(Reference { from, keyword, to });
        }
        from += 1;
    }
    Ok(found)
}

/// Returns the target of a reference, resolved against the base URI at its node.
fn lookup(document: &mut Document<'_>, from: usize, reference: &str) -> Result<usize, SchemaFault> {
    let nowhere = || SchemaFault::Unresolved(quoted(reference));
    let base = &document.resources[document.nodes[from].resource].base;
    let mut target = base.join(reference).map_err(|_| nowhere())?;
    let fragment = target.fragment().map(unescape).transpose().map_err(|()| nowhere())?.unwrap_or_default();
    target.set_fragment(None);
    // > Implementations **MUST NOT** automatically dereference `$ref` values that resolve to a network URI.
    let resource =
        document.resource_at(target.as_str()).ok_or_else(|| SchemaFault::External(quoted(reference)))?;
    let root = document.resources[resource].root;
    if fragment.is_empty() {
        return Ok(root);
    }
    let Some(pointer) = fragment.strip_prefix('/') else {
        return document.resources[resource].anchors.get(&fragment).copied().ok_or_else(nowhere);
    };
    let (mut around, mut path) = (root, String::new());
    let mut value = document.nodes[root].value;
    // The value of a data keyword contains no schemas.
    let mut at_schema = true;
    for segment in pointer.split('/') {
        let name = segment.replace("~1", "/").replace("~0", "~");
        if at_schema && matches!(under(&name), Under::Data) {
            return Err(nowhere());
        }
        let inner = match value {
            Value::Object(members) => members.get(&name),
            Value::Array(items) => name.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        value = inner.ok_or_else(nowhere)?;
        let _ = write!(path, "/{segment}");
        at_schema = false;
        if let Some(known) = document.at(value) {
            (around, at_schema) = (known, true);
            path.clear();
        }
    }
    match document.at(value) {
        Some(known) => Ok(known),
        None if value.is_object() || value.is_boolean() => document.adopt(value, around, path),
        None => Err(nowhere()),
    }
}

/// Returns the target of a dynamic reference. If the static target is a dynamic anchor, this is the outermost schema with
/// that anchor on the path of evaluation, which begins at the root.
fn outermost_anchor(document: &Document<'_>, to: usize, reference: &str) -> Result<usize, SchemaFault> {
    let Some((_, name)) = reference.split_once('#') else { return Ok(to) };
    let resources = &document.resources;
    if !resources[document.nodes[to].resource].dynamic.contains(name) {
        return Ok(to);
    }
    let root = &resources[document.nodes[0].resource];
    if root.dynamic.contains(name) {
        return Ok(root.anchors.get(name).copied().unwrap_or(to));
    }
    match resources.iter().filter(|resource| resource.dynamic.contains(name)).count() {
        1 => Ok(to),
        _ => Err(SchemaFault::Ambiguous(quoted(reference))),
    }
}

/// Returns the target of a recursive reference of 2019-09, which marks only roots of resources.
fn outermost_root(document: &Document<'_>, to: usize, reference: &str) -> Result<usize, SchemaFault> {
    let marked = |node: usize| document.nodes[node].value.get("$recursiveAnchor") == Some(&Value::Bool(true));
    if !marked(to) {
        return Ok(to);
    }
    if marked(0) {
        return Ok(0);
    }
    match document.resources.iter().filter(|resource| marked(resource.root)).count() {
        1 => Ok(to),
        _ => Err(SchemaFault::Ambiguous(quoted(reference))),
    }
}

/// Returns the schema with all references as JSON pointers from the root and without identifiers, so that the validator
/// resolves the same targets.
pub(super) fn rewrite(document: &Document<'_>, references: &[Reference]) -> Result<Value, SchemaFault> {
    let mut schema = document.nodes[0].value.clone();
    // Pointers may be longer than the references that they replace.
    let mut grown = 0;
    for (index, node) in document.nodes.iter().enumerate() {
        if node.value.as_object().is_some_and(|members| identifiers(document, members).next().is_some()) {
            let Some(members) = object_at(&mut schema, &document.pointer(index)) else { continue };
            let names: Vec<String> = identifiers(document, members).map(str::to_owned).collect();
            for name in names {
                members.remove(&name);
            }
        }
    }
    for reference in references {
        let Some(members) = object_at(&mut schema, &document.pointer(reference.from)) else { continue };
        let pointer = escape(&document.pointer(reference.to));
        grown += pointer.len();
        if grown > 4 * MAX_SCHEMA_SIZE {
            return Err(SchemaFault::Large);
        }
        // The two dynamic keywords become a plain `$ref`.
        members.remove(reference.keyword);
        if members.insert("$ref".to_owned(), Value::String(pointer)).is_some() && reference.keyword != "$ref"
        {
            return Err(SchemaFault::Ambiguous(format!(
                "`{}`, which has a `$ref` beside it,",
                reference.keyword
            )));
        }
    }
    Ok(schema)
}

fn identifiers<'a>(
    document: &Document<'_>,
    members: &'a Map<String, Value>,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let (draft4, old) = (document.draft == Draft::Draft4, keywords::is_old(document.draft));
    members.keys().map(|name| &**name).filter(move |name| match *name {
        "id" => draft4,
        "$id" => !draft4,
        "$schema" => true,
        name => !old && IDENTIFIERS.contains(&name),
    })
}

fn object_at<'v>(schema: &'v mut Value, pointer: &str) -> Option<&'v mut Map<String, Value>> {
    schema.pointer_mut(pointer)?.as_object_mut()
}

/// Encodes a JSON pointer as a URI fragment (RFC 6901, section 6).
fn escape(pointer: &str) -> String {
    let mut fragment = "#".to_owned();
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~$".contains(&byte) {
            fragment.push(char::from(byte));
        } else {
            let _ = write!(fragment, "%{byte:02X}");
        }
    }
    fragment
}

fn unescape(fragment: &str) -> Result<String, ()> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let [high, low, after @ ..] = after else { return Err(()) };
        let digit = |byte: &u8| char::from(*byte).to_digit(16).ok_or(());
        let value = digit(high)? * 16 + digit(low)?;
        bytes.push(u8::try_from(value).map_err(|_| ())?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| ())
}
