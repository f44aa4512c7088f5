//! Arguments of a tool that are mirrored into `Mcp-Param-*` headers: the annotations of a schema, the headers
//! that a client writes, and the comparison of a header with the body.

mod param;

pub use param::{ParamHeader, ParamHeaderFault, ParamKind, ParamMismatch};

use crate::{foreign_text::escaped, header::encode};
use param::{KEYWORD, Mirrored, Misuse};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::HashSet};

/// The parameters of one tool that are mirrored into headers, read from its `inputSchema` and checked.
///
/// > MCP servers **MAY** designate specific tool parameters to be mirrored into HTTP headers using an
/// > `x-mcp-header` extension property in the parameter's schema within the tool's `inputSchema`.
///
/// ```
/// use antiphon_wire::header::params::ParamHeaders;
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
/// });
/// let params = ParamHeaders::of(&schema).expect("a valid annotation");
/// let arguments = json!({"region": "us-west1", "query": "SELECT 1"});
/// assert_eq!(params.mirror(&arguments), [("Mcp-Param-Region".to_owned(), "us-west1".to_owned())]);
/// for param in params.iter() {
///     assert!(param.check(&arguments, Some("us-west1")).is_ok());
///     assert!(param.check(&arguments, Some("us-east1")).is_err());
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamHeaders {
    list: Vec<ParamHeader>,
}

impl ParamHeaders {
    /// Reads every `x-mcp-header` of an input schema. Searches the whole schema, so that an annotation at a
    /// place where it is not allowed is found. Takes time proportional to the size of the schema.
    ///
    /// # Errors
    ///
    /// An error if an annotation breaks a constraint.
    ///
    /// > Clients using the Streamable HTTP transport **MUST** reject tool definitions where any
    /// > `x-mcp-header` value violates these constraints.
    pub fn of(schema: &Value) -> Result<Self, ParamHeaderFault> {
        read(schema).map(|list| Self { list })
    }

    /// Returns true if no parameter is mirrored.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the parameters; parameters nearer to the root come first.
    pub fn iter(&self) -> impl Iterator<Item = &ParamHeader> {
        self.list.iter()
    }

    /// Returns the headers for these arguments: full names (`Mcp-Param-Region`) and encoded values.
    ///
    /// > Append a `Mcp-Param-{Name}: {Value}` header to the request.
    ///
    /// A value of another type than the declared one is mirrored by its own type, so that the tool's schema
    /// rejects the value and not the transport. Objects, arrays, and integers beyond ±(2^53 - 1) have no
    /// header: see [`ParamHeader::check`].
    pub fn mirror(&self, arguments: &Value) -> Vec<(String, String)> {
        let header = |param: &ParamHeader| match param.text(arguments) {
            Mirrored::Text(text) | Mirrored::Number(text) => {
                Some((param.header_name(), encode(&text).into_owned()))
            }
            Mirrored::Absent | Mirrored::Compound | Mirrored::Unsafe => None,
        };
        self.list.iter().filter_map(header).collect()
    }
}

fn read(schema: &Value) -> Result<Vec<ParamHeader>, ParamHeaderFault> {
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

/// The maximum length of a pointer in a message, in characters. A longer pointer is cut.
const MAX_POINTER: usize = 200;

/// A walk through a schema without recursion: `seen` is the list of all places and the queue of the places
/// that are still to open.
struct Places<'a> {
    seen: Vec<Seen<'a>>,
    next: usize,
}

struct Seen<'a> {
    value: &'a Value,
    chain: Chain,
    step: Option<Step<'a>>,
}

struct Step<'a> {
    parent: usize,
    name: Cow<'a, str>,
}

/// The relation of a place to the chain of `properties` from the root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Root,
    /// A map of properties on the chain: its members are properties, and the map itself is no schema.
    Properties,
    Property,
    /// A map whose members are schemas under names that are not keywords; off the chain.
    Named,
    /// A schema, or a list of schemas, or an unknown value; off the chain.
    Off,
}

/// An object that is, or may be, a schema.
struct Place<'a> {
    schema: &'a Map<String, Value>,
    index: usize,
    chain: Chain,
}

impl Place<'_> {
    /// Returns true if the place is statically reachable.
    ///
    /// > _statically reachable_ from the schema root: reachable via a chain consisting solely of `properties`
    /// > keys.
    fn is_property(&self) -> bool {
        self.chain == Chain::Property
    }
}

impl<'a> Places<'a> {
    fn of(schema: &'a Value) -> Self {
        Self { seen: vec![Seen { value: schema, chain: Chain::Root, step: None }], next: 0 }
    }

    /// Returns the next schema; schemas nearer to the root come first.
    fn next(&mut self) -> Option<Place<'a>> {
        while let Some(&Seen { value, chain, .. }) = self.seen.get(self.next) {
            let index = self.next;
            self.next += 1;
            match value {
                Value::Object(members) => {
                    self.open_object(index, chain, members);
                    if !matches!(chain, Chain::Properties | Chain::Named) {
                        return Some(Place { schema: members, index, chain });
                    }
                }
                // A list of schemas; it leads off the chain, whatever it is a list for.
                Value::Array(items) => {
                    for (at, item) in items.iter().enumerate() {
                        self.push(index, Cow::Owned(at.to_string()), item, Chain::Off);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn open_object(&mut self, index: usize, chain: Chain, members: &'a Map<String, Value>) {
        for (name, value) in members {
            let inner = match chain {
                Chain::Properties => Some(Chain::Property),
                Chain::Named => Some(Chain::Off),
                Chain::Root | Chain::Property => keyword(name, true),
                Chain::Off => keyword(name, false),
            };
            if let Some(inner) = inner {
                self.push(index, Cow::Borrowed(name), value, inner);
            }
        }
    }

    fn push(&mut self, parent: usize, name: Cow<'a, str>, value: &'a Value, chain: Chain) {
        if value.is_object() || value.is_array() {
            self.seen.push(Seen { value, chain, step: Some(Step { parent, name }) });
        }
    }

    /// Returns the names of the properties that lead to a property.
    fn path(&self, place: &Place<'_>) -> Vec<String> {
        let named = |at: &Seen<'a>| at.chain == Chain::Property;
        let mut path: Vec<String> = self.steps(place.index, named).map(Cow::into_owned).collect();
        path.reverse();
        path
    }

    /// Returns the place as a JSON pointer for people: without characters that would damage a log, and cut to
    /// the maximum length.
    fn pointer(&self, place: &Place<'_>) -> String {
        let mut names: Vec<Cow<'a, str>> = self.steps(place.index, |_| true).collect();
        names.reverse();
        let in_pointer = |name: &Cow<'a, str>| name.replace('~', "~0").replace('/', "~1");
        let whole: String = names.iter().flat_map(|name| ["/".to_owned(), in_pointer(name)]).collect();
        escaped(&whole).limit(MAX_POINTER).to_string()
    }

    /// Returns the names of the wanted steps, from the place up to the root.
    fn steps(&self, index: usize, wanted: impl Fn(&Seen<'a>) -> bool) -> impl Iterator<Item = Cow<'a, str>> {
        let up = move |at: &&Seen<'a>| at.step.as_ref().map(|step| &self.seen[step.parent]);
        std::iter::successors(Some(&self.seen[index]), up)
            .filter(move |at| wanted(at))
            .filter_map(|at| at.step.as_ref().map(|step| step.name.clone()))
    }
}

/// Returns the kind of place that a keyword leads to; `None` if the keyword's value contains no schema.
///
/// > The chain **MUST NOT** pass through `items` (or any other array keyword), composition keywords (`oneOf`,
/// > `anyOf`, `allOf`, `not`), conditional keywords (`if`/`then`/`else`), or `$ref`.
///
/// References are not followed: their targets are found at their own places. An unknown keyword is searched,
/// because a reference may lead into it.
fn keyword(name: &str, on_chain: bool) -> Option<Chain> {
    match name {
        "properties" if on_chain => Some(Chain::Properties),
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" => Some(Chain::Named),
        // Of older dialects.
        "definitions" | "dependencies" => Some(Chain::Named),
        // Data, not schemas; the last one maps names of properties to names of properties.
        "const" | "enum" | "default" | "examples" | "dependentRequired" => None,
        // The caller that opened the schema reads the annotation itself.
        KEYWORD => None,
        _ => Some(Chain::Off),
    }
}
