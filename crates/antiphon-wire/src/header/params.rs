//! Arguments of a tool that are mirrored into `Mcp-Param-*` headers: the annotations of a schema, the headers
//! that a client writes, and the comparison of a header with the body.

mod fault;
mod number;
mod param;
mod places;
mod read;

pub use fault::ParamHeaderFault;
pub use param::{ParamHeader, ParamKind, ParamMismatch};

use super::encode;
use param::Mirrored;
use serde_json::Value;

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
        read::read(schema).map(|list| Self { list })
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
