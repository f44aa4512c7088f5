//! A schema as a graph: all subschemas, and the ways in which they are applied.

use super::{
    fault::{
        MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_SCHEMA_DEPTH, MAX_SCHEMA_SIZE, MAX_SUBSCHEMAS, SchemaFault,
        quoted,
    },
    keywords::{self, Applied, IDENTIFIERS, Under, under},
};
use jsonschema::Draft;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use url::Url;

/// A subschema.
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    /// The index of its resource in `Document::resources`.
    pub(super) resource: usize,
    /// The enclosing schema, and the JSON pointer relative to that schema.
    parent: Option<(usize, String)>,
    pub(super) edges: Vec<(Applied, usize)>,
}

/// A schema resource: a schema with its own URI.
pub(super) struct Resource {
    pub(super) base: Url,
    pub(super) root: usize,
    pub(super) anchors: HashMap<String, usize>,
    /// The dynamic ones among `anchors`.
    pub(super) dynamic: HashSet<String>,
}

/// The graph of one schema document.
pub(super) struct Document<'a> {
    pub(super) draft: Draft,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) resources: Vec<Resource>,
    by_address: HashMap<usize, usize>,
    by_uri: HashMap<String, usize>,
    patterns: HashSet<&'a str>,
    /// The length of all `patterns`, in bytes.
    pattern_bytes: usize,
    /// The number of `nodes` whose keywords have been read.
    opened: usize,
}

/// Checks the size and the nesting of a schema, without recursion.
pub(super) fn check_size(schema: &Value) -> Result<(), SchemaFault> {
    let mut size = 0;
    let mut open = vec![(schema, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(SchemaFault::Deep);
        }
        size += match value {
            Value::String(text) => text.len() + 3,
            Value::Object(members) => members.keys().map(|name| name.len() + 4).sum::<usize>() + 2,
            _ => 4,
        };
        if size > MAX_SCHEMA_SIZE {
            return Err(SchemaFault::Large);
        }
        match value {
            Value::Object(members) => open.extend(members.values().map(|inner| (inner, depth + 1))),
            Value::Array(items) => open.extend(items.iter().map(|inner| (inner, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Escapes a name as one segment of a JSON pointer.
fn segment(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl<'a> Document<'a> {
    pub(super) fn read(schema: &'a Value, draft: Draft) -> Result<Self, SchemaFault> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaFault::Invalid("it must be an object or a boolean".to_owned()));
        }
        let mut document = Self {
            draft,
            nodes: Vec::new(),
            resources: Vec::new(),
            by_address: HashMap::new(),
            by_uri: HashMap::new(),
            patterns: HashSet::new(),
            pattern_bytes: 0,
            opened: 0,
        };
        // No schema exists at this URI, so an unresolved relative `$ref` counts as external.
        let base = Url::parse("json-schema:///").map_err(|_| SchemaFault::Identifier("(base)".to_owned()))?;
        document.add_resource(base, 0)?;
        document.add(schema, 0, None)?;
        document.open_all()?;
        Ok(document)
    }

    /// The node of a value in the document.
    pub(super) fn at(&self, value: &Value) -> Option<usize> {
        self.by_address.get(&address(value)).copied()
    }

    pub(super) fn resource_at(&self, uri: &str) -> Option<usize> {
        self.by_uri.get(uri).copied()
    }

    pub(super) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Adds a value as a schema because a reference points to it, with all its subschemas.
    pub(super) fn adopt(
        &mut self,
        value: &'a Value,
        around: usize,
        path: String,
    ) -> Result<usize, SchemaFault> {
        let resource = self.nodes[around].resource;
        let index = self.add(value, resource, Some((around, path)))?;
        self.open_all()?;
        Ok(index)
    }

    fn add(
        &mut self,
        value: &'a Value,
        resource: usize,
        parent: Option<(usize, String)>,
    ) -> Result<usize, SchemaFault> {
        if let Some(known) = self.at(value) {
            return Ok(known);
        }
        if self.nodes.len() >= MAX_SUBSCHEMAS {
            return Err(SchemaFault::Many);
        }
        self.nodes.push(Node { value, resource, parent, edges: Vec::new() });
        self.by_address.insert(address(value), self.nodes.len() - 1);
        Ok(self.nodes.len() - 1)
    }

    /// The maximum nesting of schemas.
    pub(super) fn deepest(&self) -> u32 {
        let mut depths: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            // Enclosing nodes have lower indexes.
            let around = node.parent.as_ref().and_then(|(parent, _)| depths.get(*parent));
            depths.push(around.map_or(1, |depth| depth + 1));
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// The JSON pointer of a node.
    pub(super) fn pointer(&self, index: usize) -> String {
        let up = |index: &usize| self.nodes[*index].parent.as_ref().map(|(parent, _)| *parent);
        let mut steps: Vec<&str> = std::iter::successors(Some(index), up)
            .filter_map(|index| self.nodes[index].parent.as_ref().map(|(_, path)| &**path))
            .collect();
        steps.reverse();
        steps.concat()
    }

    /// Returns `true` if the enclosing schema may reject a value because the schema at `index` holds for it.
    pub(super) fn decides_otherwise(&self, index: usize) -> bool {
        let Some((parent, path)) = &self.nodes[index].parent else { return false };
        match path.split('/').nth(1) {
            Some("not" | "if" | "oneOf") => true,
            Some("contains") => self.nodes[*parent].value.get("maxContains").is_some(),
            _ => false,
        }
    }

    /// Returns the regular expressions in the order of their schemas, each with its schema and its keyword.
    pub(super) fn patterns(&self) -> impl Iterator<Item = (usize, &'static str, &'a str)> {
        let own = |(index, node): (usize, &Node<'a>)| {
            let value: &'a Value = node.value;
            let pattern = value.get("pattern").and_then(Value::as_str).map(|text| (index, "pattern", text));
            let named = value.get("patternProperties").and_then(Value::as_object).into_iter();
            let named = named.flat_map(|members| members.keys());
            pattern.into_iter().chain(named.map(move |text| (index, "patternProperties", &**text)))
        };
        self.nodes.iter().enumerate().flat_map(own)
    }

    fn open_all(&mut self) -> Result<(), SchemaFault> {
        while let Some(node) = self.nodes.get(self.opened) {
            let (index, value) = (self.opened, node.value);
            self.opened += 1;
            if let Value::Object(members) = value {
                self.identify(index, members)?;
                self.open(index, members)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, index: usize, members: &'a Map<String, Value>) -> Result<(), SchemaFault> {
        for (keyword, value) in members {
            match under(keyword) {
                Under::Data | Under::Unknown => {}
                Under::Schemas(applied) => self.schemas(index, keyword, value, |_| applied.clone())?,
                Under::Items if value.is_array() => self.schemas(index, keyword, value, Applied::Item)?,
                Under::Items => self.schemas(index, keyword, value, |_| Applied::EveryItem)?,
                Under::Map(applied) => self.map(index, keyword, value, |_| applied.clone())?,
                Under::Properties => {
                    self.map(index, keyword, value, |name| Applied::Property(name.to_owned()))?;
                }
            }
            let patterns: &mut dyn Iterator<Item = &'a str> = match (&**keyword, value) {
                ("pattern", Value::String(pattern)) => &mut std::iter::once(&**pattern),
                ("patternProperties", Value::Object(named)) => &mut named.keys().map(|name| &**name),
                _ => continue,
            };
            for pattern in patterns {
                if self.patterns.insert(pattern) {
                    self.pattern_bytes += pattern.len();
                }
                if self.patterns.len() > MAX_PATTERNS || self.pattern_bytes > MAX_PATTERN_BYTES {
                    return Err(SchemaFault::Patterns);
                }
            }
        }
        Ok(())
    }

    fn schemas(
        &mut self,
        index: usize,
        keyword: &str,
        value: &'a Value,
        applied: impl Fn(usize) -> Applied,
    ) -> Result<(), SchemaFault> {
        let Value::Array(items) = value else {
            return self.child(index, segment(keyword), value, applied(0));
        };
        for (at, item) in items.iter().enumerate() {
            self.child(index, format!("{}/{at}", segment(keyword)), item, applied(at))?;
        }
        Ok(())
    }

    fn map(
        &mut self,
        index: usize,
        keyword: &str,
        value: &'a Value,
        applied: impl Fn(&str) -> Applied,
    ) -> Result<(), SchemaFault> {
        for (name, inner) in value.as_object().into_iter().flatten() {
            self.child(index, segment(keyword) + &segment(name), inner, applied(name))?;
        }
        Ok(())
    }

    fn child(
        &mut self,
        index: usize,
        path: String,
        value: &'a Value,
        applied: Applied,
    ) -> Result<(), SchemaFault> {
        // Any other value is data (`dependencies` may contain names) or a fault that the meta-schema detects.
        if value.is_object() || value.is_boolean() {
            let child = self.add(value, self.nodes[index].resource, Some((index, path)))?;
            self.nodes[index].edges.push((applied, child));
        }
        Ok(())
    }

    /// Records and checks the identifiers of a schema. They are removed later, so the validator does not check them.
    fn identify(&mut self, index: usize, members: &Map<String, Value>) -> Result<(), SchemaFault> {
        let text = |name: &str| match members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(&**text)),
            Some(_) => Err(SchemaFault::Identifier(format!("`{name}`"))),
        };
        // An embedded schema of another dialect would have other rules.
        if let Some(uri) = text("$schema")?
            && keywords::named(uri) != Some(self.draft)
        {
            return Err(SchemaFault::Dialect(format!("{}, inside of a schema of another,", quoted(uri))));
        }
        let old = keywords::is_old(self.draft);
        let id = text(if self.draft == Draft::Draft4 { "id" } else { IDENTIFIERS[0] })?;
        match id {
            // Old dialects ignore all siblings of `$ref`.
            Some(_) if old && members.contains_key("$ref") => {}
            Some(id) => match id.strip_prefix('#') {
                Some(anchor) if old && !anchor.is_empty() => self.anchor(index, anchor)?,
                _ => {
                    let base = &self.resources[self.nodes[index].resource].base;
                    let mut base = base.join(id).map_err(|_| SchemaFault::Identifier(quoted(id)))?;
                    base.set_fragment(None);
                    if index == 0 && base == self.resources[0].base {
                        // Some root schemas have the id `"#"`.
                        return self.name(index, members);
                    }
                    self.nodes[index].resource = self.add_resource(base, index)?;
                }
            },
            None => {}
        }
        self.name(index, members)
    }

    fn name(&mut self, index: usize, members: &Map<String, Value>) -> Result<(), SchemaFault> {
        if keywords::is_old(self.draft) {
            return Ok(());
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = members.get(keyword) {
                let anchor =
                    anchor.as_str().ok_or_else(|| SchemaFault::Identifier(format!("`{keyword}`")))?;
                self.anchor(index, anchor)?;
                if keyword == "$dynamicAnchor" {
                    let resource = self.nodes[index].resource;
                    self.resources[resource].dynamic.insert(anchor.to_owned());
                }
            }
        }
        Ok(())
    }

    fn anchor(&mut self, index: usize, name: &str) -> Result<(), SchemaFault> {
        let resource = self.nodes[index].resource;
        match self.resources[resource].anchors.insert(name.to_owned(), index) {
            // `$anchor` and `$dynamicAnchor` of one schema may be the same.
            Some(other) if other != index => Err(SchemaFault::Identifier(quoted(name))),
            _ => Ok(()),
        }
    }

    fn add_resource(&mut self, base: Url, root: usize) -> Result<usize, SchemaFault> {
        let index = self.resources.len();
        let uri = base.as_str().to_owned();
        if self.by_uri.contains_key(&uri) {
            return Err(SchemaFault::Identifier(quoted(&uri)));
        }
        self.by_uri.insert(uri, index);
        self.resources.push(Resource { base, root, anchors: HashMap::new(), dynamic: HashSet::new() });
        Ok(index)
    }
}
