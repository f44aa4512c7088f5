//! URIs and templates of URIs.

use serde_json::{Map, Value};

/// A template, split into its parts.
#[derive(Clone, Debug)]
pub(crate) struct UriTemplate(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    Variable(String),
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// Names the part of the template that cannot be matched.
    pub(crate) fn parse(template: &str) -> Result<Self, String> {
        let (mut parts, mut rest) = (Vec::new(), template);
        while let Some((literal, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("a `{` has no `}`")?;
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
                return Err(format!(
                    "`{{{name}}}` is not a simple variable: the name of a variable, without the operators of RFC 6570, such \
                     as `+` and `?`"
                ));
            }
            if literal.is_empty() && matches!(parts.last(), Some(Part::Variable(_))) {
                return Err(format!("nothing separates `{{{name}}}` from the variable before it"));
            }
            if parts.iter().any(|part| matches!(part, Part::Variable(known) if known == name)) {
                return Err(format!("`{{{name}}}` occurs twice"));
            }
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            parts.push(Part::Variable(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// Returns the names of the variables, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// Returns the template with this value in place of each variable.
    pub(crate) fn with_each(&self, value: &str) -> String {
        let text = |part: &Part| match part {
            Part::Literal(text) => text.clone(),
            Part::Variable(_) => value.to_owned(),
        };
        self.0.iter().map(text).collect()
    }

    /// Returns the variables' values, if the URI matches.
    pub(crate) fn variables(&self, uri: &str) -> Option<Map<String, Value>> {
        let (mut values, mut rest) = (Map::new(), uri);
        for (index, part) in self.0.iter().enumerate() {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Variable(name) => {
                    let end = match self.0.get(index + 1) {
                        Some(Part::Literal(literal)) => rest.find(literal.as_str())?,
                        _ => rest.len(),
                    };
                    let (value, after) = rest.split_at(end);
                    if value.is_empty() || value.contains('/') {
                        return None;
                    }
                    values.insert(name.clone(), percent_decoded(value)?.into());
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(values)
    }
}

/// Decodes percent-encoding; `None` if a percent sign is not followed by two hexadecimal digits, or if the bytes are
/// not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut input) = (Vec::with_capacity(text.len()), text.bytes());
    while let Some(byte) = input.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(input.next()?)? * 16 + digit(input.next()?)?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// > Custom URI schemes **MUST** be in accordance with RFC3986
///
/// Returns whether the text is a scheme, followed only by characters that a URI may hold. The rest is not parsed: its
/// meaning depends on the scheme.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(fits) && is_rest(rest)
}

fn is_rest(rest: &str) -> bool {
    let mut pieces = rest.split('%');
    let plain = |piece: &str| {
        piece.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte))
    };
    let escaped = |piece: &str| piece.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    pieces.next().is_none_or(plain) && pieces.all(|piece| escaped(piece) && plain(piece))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn uris_that_fit_and_uris_that_do_not() {
        for (template, uri, expected) in [
            ("report://{id}", "report://7", Some(json!({"id": "7"}))),
            ("report://{id}", "report://a%20b%C3%A9", Some(json!({"id": "a bé"}))),
            ("report://{id}", "report://", None),
            ("report://{id}", "report://a/b", None),
            ("report://{id}", "report://%4", None),
            ("report://{id}", "report://%FF", None),
            ("report://{id}", "reports://7", None),
            ("db://{host}/{table}/rows", "db://h/t/rows", Some(json!({"host": "h", "table": "t"}))),
            ("db://{host}/{table}/rows", "db://h/t/rows/", None),
            ("a://{x}-{y}", "a://1-2-3", Some(json!({"x": "1", "y": "2-3"}))),
        ] {
            let found = UriTemplate::parse(template).unwrap().variables(uri).map(Value::Object);
            assert_eq!(found, expected, "{template} {uri}");
        }
        for template in ["a://{", "a://{+x}", "a://{}", "a://{x}{y}", "a://{x}/{x}", "a://{x*}"] {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }

    #[test]
    fn what_is_a_uri_and_what_is_not() {
        for uri in [
            "a:",
            "file:///a/b%20c",
            "a+b-c.1://x",
            "urn:isbn:0451450523",
            "h://[::1]:8/?q=1#f",
            "a:%C3%A9%41",
        ] {
            assert!(is_uri(uri), "{uri}");
        }
        for text in [
            "", ":", "a", "a/b", ":x", "1a:b", "a b:c", "a:b c", "a:é", "é:a", "a:%", "a:%4", "a:%4g",
            "a:\n", "a:<b>", "a:{b}",
        ] {
            assert!(!is_uri(text), "{text}");
        }
    }
}
