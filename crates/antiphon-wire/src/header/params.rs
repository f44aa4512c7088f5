//! Arguments of a tool that are mirrored into `Mcp-Param-*` headers: the annotations of a schema, the headers
//! that a client writes, and the comparison of a header with the body.

mod param;
mod places;

pub use param::{ParamHeader, ParamHeaderFault, ParamKind, ParamMismatch};

use super::encode;
use param::{KEYWORD, Mirrored, Misuse};
use places::{Place, Places};
use serde_json::Value;
use std::collections::HashSet;

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
