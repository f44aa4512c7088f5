//! The audience of tokens: one resource.

use serde_json::Value;

/// The resource that a token must be for.
#[derive(Clone, Debug)]
pub struct Audience {
    /// The URI in its canonical form; `None` for a text that is no URI, which no token is for.
    canonical: Option<String>,
    /// Other names of the resource.
    others: Vec<String>,
}

impl Audience {
    /// Returns the audience of the resource with this URI.
    #[must_use]
    pub fn resource(uri: &str) -> Self {
        Self { canonical: canonical(uri), others: Vec::new() }
    }

    /// Adds another name, which must mean this resource and no other: it is compared byte by byte.
    #[must_use]
    pub fn or(mut self, name: impl Into<String>) -> Self {
        self.others.push(name.into());
        self
    }

    /// Returns true if the claim `aud` names this resource.
    ///
    /// > MCP servers **MUST** only accept tokens that are valid for use with their own resources.
    pub(crate) fn is_in(&self, claim: Option<&Value>) -> bool {
        let is = |value: &Value| value.as_str().is_some_and(|name| self.is_named(name));
        match claim {
            Some(Value::Array(all)) => all.iter().any(is),
            Some(one) => is(one),
            None => false,
        }
    }

    /// > While the canonical form uses lowercase scheme and host components, implementations **SHOULD** accept uppercase
    /// > scheme and host components for robustness and interoperability.
    fn is_named(&self, name: &str) -> bool {
        canonical(name).is_some_and(|name| Some(name) == self.canonical)
            || self.others.iter().any(|other| other == name)
    }
}

/// Scheme and authority in small letters, a lone slash dropped, and nothing else changed.
fn canonical(uri: &str) -> Option<String> {
    let authority_at = uri.find("://")? + 3;
    let path_at = uri[authority_at..].find(['/', '?', '#']).map_or(uri.len(), |at| authority_at + at);
    let path = &uri[path_at..];
    let head = uri[..path_at].to_ascii_lowercase();
    Some(if path == "/" { head } else { head + path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_audience_is_this_resource() {
        let resource = Audience::resource("https://api.example.com/mcp");
        for (audience, is_it) in [
            ("https://api.example.com/mcp", true),
            ("HTTPS://API.Example.com/mcp", true),
            ("https://api.example.com/MCP", false),
            ("https://api.example.com/mcp/", false),
            ("https://api.example.com/mcp2", false),
            ("https://api.example.com/mcp?x", false),
            ("https://api.example.com", false),
            ("https://api.example.com.evil.example/mcp", false),
            ("https://evil.example/https://api.example.com/mcp", false),
            ("http://api.example.com/mcp", false),
            ("api.example.com/mcp", false),
            ("", false),
        ] {
            assert_eq!(resource.is_named(audience), is_it, "{audience}");
        }
        let root = Audience::resource("https://api.example.com");
        assert!(root.is_named("https://api.example.com/") && !root.is_named("https://api.example.com//"));
    }
}
