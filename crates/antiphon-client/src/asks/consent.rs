//! The texts that a person sees before they agree: the parts of a URL, and the warnings of a form. Nothing here fetches anything.
//!
//! > MUST NOT automatically pre-fetch the URL or any of its metadata.

use antiphon_wire::{FieldKind, FormSchema, escaped, is_escaped, secret_in};
use serde::{Serialize, Serializer};
use std::{error::Error as StdError, fmt};
use url::{Host, Url};

/// The parts of a URL that a person must see before they agree to open it.
///
/// > **MUST** show the full URL to the user for examination before consent.
/// >
/// > **SHOULD** highlight the domain of the URL to mitigate subdomain spoofing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UrlConsent {
    /// The full URL as a browser reads it. Control characters and line breaks are removed or escaped. Letters outside ASCII
    /// are escaped in paths, and written in Punycode in hosts.
    pub full: String,
    /// The host, to be highlighted: in ASCII, so that look-alike letters are visible.
    pub host: String,
    /// Its suspicious features.
    pub warnings: Vec<UrlWarning>,
}

/// A suspicious feature of a URL.
///
/// > **SHOULD** have warnings for ambiguous/suspicious URIs (i.e., containing Punycode).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UrlWarning {
    /// The host is written in Punycode: letters that may look like others.
    Punycode,
    /// A user name or password comes before the host, and can look like the host.
    UserInfo,
    /// Plain http to another machine: others can read and change the data.
    PlainHttp,
    /// The host is an IP address, which does not show the owner.
    IpHost,
    /// The scheme is neither http nor https: the URL may run code in the browser, read files of this machine, or start another
    /// program. Only [`show_any_url`] returns such a URL.
    OtherScheme,
    /// The text can be misread as another URL than the one that a browser opens.
    Rewritten,
}

impl fmt::Display for UrlWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Punycode => "the host contains letters that may look like others (Punycode)",
            Self::UserInfo => "the text before the `@` is not the host",
            Self::PlainHttp => "plain http: others can read and change the data",
            Self::IpHost => "the host is an IP address",
            Self::OtherScheme => {
                "neither http nor https: it may run code in the browser, read files, or start another program"
            }
            Self::Rewritten => "the server wrote it in a misleading way",
        })
    }
}

/// The text is no URL that may be opened, the server's fault: it is not valid, has no host, or has another scheme than `http`
/// and `https`.
///
/// > The `url` parameter **MUST** contain a valid URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAUrl;

impl fmt::Display for NotAUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server sent a URL that must not be opened: it is not valid, has no host, or is neither http nor https")
    }
}

impl StdError for NotAUrl {}

/// Parses an `http` or `https` URL as browsers do, and returns the parts to show. Open [`UrlConsent::full`], not the server's
/// text.
///
/// # Errors
/// [`NotAUrl`].
pub fn show_url(text: &str) -> Result<UrlConsent, NotAUrl> {
    show_any_url(text).and_then(|shown| {
        if shown.warnings.contains(&UrlWarning::OtherScheme) { Err(NotAUrl) } else { Ok(shown) }
    })
}

/// Parses a URL of any scheme, if it has a host: as [`show_url`], for programs that open other URLs too. Another scheme is a
/// [warning](UrlWarning::OtherScheme).
///
/// # Errors
/// [`NotAUrl`].
pub fn show_any_url(text: &str) -> Result<UrlConsent, NotAUrl> {
    let url = Url::parse(text).map_err(|_| NotAUrl)?;
    let host = url.host().filter(|host| !matches!(host, Host::Domain(""))).ok_or(NotAUrl)?;
    let mut warnings = Vec::new();
    let mut warn = |applies: bool, warning| {
        if applies {
            warnings.push(warning);
        }
    };
    let labels = |name: &str| name.split('.').any(|label| label.starts_with("xn--"));
    warn(matches!(host, Host::Domain(name) if labels(&name.to_ascii_lowercase())), UrlWarning::Punycode);
    warn(!url.username().is_empty() || url.password().is_some(), UrlWarning::UserInfo);
    warn(url.scheme() == "http" && !is_loopback(&host), UrlWarning::PlainHttp);
    warn(!matches!(host, Host::Domain(_)) && !is_loopback(&host), UrlWarning::IpHost);
    warn(!matches!(url.scheme(), "http" | "https"), UrlWarning::OtherScheme);
    warn(is_misleading(text, url.scheme()), UrlWarning::Rewritten);
    Ok(UrlConsent { full: url.to_string(), host: host.to_string(), warnings })
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Returns `true` if a browser reads another URL than the one that the text shows. Browsers remove line breaks and tabs, read
/// backslashes as slashes, and add missing slashes.
fn is_misleading(text: &str, scheme: &str) -> bool {
    let slashes = text.get(scheme.len()..).unwrap_or_default();
    text.contains(|c: char| c == '\\' || is_escaped(c))
        || text.trim() != text
        || !slashes.starts_with("://")
        || slashes.starts_with(":///")
}

/// A suspicious feature of a form. Serializes as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormWarning {
    /// The form seems to ask for a secret.
    Secret {
        /// The name of the field; none if the message of the form suggests it.
        field: Option<String>,
        /// The word that suggests it, such as `password`.
        word: &'static str,
    },
}

impl fmt::Display for FormWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Secret { field, word } = self;
        match field {
            Some(field) => write!(f, "the field `{}` seems to ask for a secret ({word})", escaped(field))?,
            None => write!(f, "the form seems to ask for a secret ({word})")?,
        }
        f.write_str("; a server must not ask for secrets in a form, because this program and its logs see them: enter none")
    }
}

impl Serialize for FormWarning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns the warnings to show above a form.
///
/// > Servers **MUST NOT** use form mode elicitation to request sensitive information such as passwords, API keys,
/// > access tokens, or payment credentials
pub fn form_warnings(message: &str, schema: &FormSchema) -> Vec<FormWarning> {
    // A secret can be typed only into a field without fixed choices.
    let is_typed = |kind: &FieldKind| {
        !matches!(kind, FieldKind::Boolean { .. } | FieldKind::One { .. } | FieldKind::Many { .. })
    };
    let fields: Vec<_> = schema.fields().iter().filter(|field| is_typed(&field.kind)).collect();
    let mut warnings: Vec<FormWarning> = fields
        .iter()
        .filter_map(|field| {
            let texts = [Some(&*field.name), field.title.as_deref(), field.description.as_deref()];
            let word = texts.into_iter().flatten().find_map(secret_in)?;
            Some(FormWarning::Secret { field: Some(field.name.clone()), word })
        })
        .collect();
    if let Some(word) = secret_in(message).filter(|_| warnings.is_empty() && !fields.is_empty()) {
        warnings.push(FormWarning::Secret { field: None, word });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::{UrlWarning::*, *};

    #[test]
    fn forms_that_ask_for_a_secret_have_a_warning() {
        let form = |fields: serde_json::Value| -> FormSchema {
            serde_json::from_value(serde_json::json!({"type": "object", "properties": fields})).unwrap()
        };
        let text = serde_json::json!({"type": "string"});
        for (message, fields, expected) in [
            ("Who?", serde_json::json!({"name": text}), &[][..]),
            ("Who?", serde_json::json!({"name": text, "password": text}), &[(Some("password"), "password")]),
            (
                "Who?",
                serde_json::json!({"a": {"type": "string", "title": "Your API key"}, "cardNumber": {"type": "integer"}}),
                &[(Some("a"), "api_key"), (Some("cardNumber"), "card")],
            ),
            (
                "Who?",
                serde_json::json!({"a": {"type": "string", "description": "The CVV on the back"}}),
                &[(Some("a"), "cvv")],
            ),
            ("Enter your GitHub password", serde_json::json!({"value": text}), &[(None, "password")]),
            // Nothing can be typed here.
            (
                "Rotate the token?",
                serde_json::json!({"token": {"type": "boolean"}, "card": {"type": "string", "enum": ["a"]}}),
                &[],
            ),
        ] {
            let expected: Vec<FormWarning> = expected
                .iter()
                .map(|(field, word)| FormWarning::Secret { field: field.map(str::to_owned), word })
                .collect();
            assert_eq!(form_warnings(message, &form(fields)), expected, "{message}");
        }
        let shown = FormWarning::Secret { field: Some("a\u{1b}".into()), word: "token" }.to_string();
        assert!(shown.starts_with(r"the field `a\u{1b}` seems to ask for a secret (token)"), "{shown}");
    }

    #[test]
    fn only_web_addresses_are_shown() {
        for (text, any) in [
            ("https://a.example/", true),
            ("http://a.example/", true),
            ("HTTPS://a.example/", true),
            ("javascript://host/%0aalert(1)", false),
            ("java\nscript://host/%0aalert(1)", false),
            ("data://host/x", false),
            ("file://host/etc/passwd", false),
            ("vbscript://host/x", false),
            ("smb://host/share", false),
            ("ms-msdt://host/x", false),
            ("ftp://a.example/x", false),
        ] {
            assert_eq!(show_url(text).is_ok(), any, "{text:?}");
            let shown = show_any_url(text).unwrap();
            assert_eq!(shown.warnings.contains(&OtherScheme), !any, "{text:?}");
        }
        for text in ["javascript:alert(1)", "not a url", "mailto:a@b.example", ""] {
            assert_eq!((show_url(text), show_any_url(text)), (Err(NotAUrl), Err(NotAUrl)), "{text:?}");
        }
        let text = OtherScheme.to_string();
        assert!(text.contains("run code in the browser") && !text.contains("not a web address"), "{text}");
    }

    fn check(text: &str, expected: Result<(&str, &str, &[UrlWarning]), NotAUrl>) {
        let shown = show_url(text);
        let shown = shown.as_ref().map(|shown| (&*shown.full, &*shown.host, &*shown.warnings));
        assert_eq!(shown, expected.as_ref().copied(), "{text:?}");
    }

    #[test]
    fn what_is_shown() {
        for (text, expected) in [
            ("https://pay.example/a?b=c#d", Ok(("https://pay.example/a?b=c#d", "pay.example", &[][..]))),
            ("https://Pay.Example:8443", Ok(("https://pay.example:8443/", "pay.example", &[]))),
            ("http://pay.example/", Ok(("http://pay.example/", "pay.example", &[PlainHttp]))),
            ("http://localhost:8080/x", Ok(("http://localhost:8080/x", "localhost", &[]))),
            ("http://127.0.0.1/", Ok(("http://127.0.0.1/", "127.0.0.1", &[]))),
            ("http://[::1]/", Ok(("http://[::1]/", "[::1]", &[]))),
            (
                "http://localhost.evil.example/",
                Ok(("http://localhost.evil.example/", "localhost.evil.example", &[PlainHttp])),
            ),
            ("https://10.0.0.1/", Ok(("https://10.0.0.1/", "10.0.0.1", &[IpHost]))),
            // Other spellings of an address.
            ("https://0x0a000001/", Ok(("https://10.0.0.1/", "10.0.0.1", &[IpHost]))),
            ("http://2130706433/", Ok(("http://127.0.0.1/", "127.0.0.1", &[]))),
            // A Cyrillic `а`.
            (
                "https://p\u{430}ypal.com/",
                Ok(("https://xn--pypal-4ve.com/", "xn--pypal-4ve.com", &[Punycode])),
            ),
            (
                "https://xn--pypal-4ve.com/",
                Ok(("https://xn--pypal-4ve.com/", "xn--pypal-4ve.com", &[Punycode])),
            ),
            (
                "https://bank.example@evil.example/",
                Ok(("https://bank.example@evil.example/", "evil.example", &[UserInfo])),
            ),
            (
                "https://evil.example\\@bank.example/",
                Ok(("https://evil.example/@bank.example/", "evil.example", &[Rewritten])),
            ),
            ("https:evil.example", Ok(("https://evil.example/", "evil.example", &[Rewritten]))),
            (
                "https:evil.example?to=https://bank.example/",
                Ok(("https://evil.example/?to=https://bank.example/", "evil.example", &[Rewritten])),
            ),
            (" https://a.example/", Ok(("https://a.example/", "a.example", &[Rewritten]))),
            ("https:///evil.example", Ok(("https://evil.example/", "evil.example", &[Rewritten]))),
            ("ht\ntps://evil.example/", Ok(("https://evil.example/", "evil.example", &[Rewritten]))),
            ("https://a.example/\u{202e}x", Ok(("https://a.example/%E2%80%AEx", "a.example", &[Rewritten]))),
            ("ftp://a.example/x", Err(NotAUrl)),
            ("https://a.example/\u{3164}x", Ok(("https://a.example/%E3%85%A4x", "a.example", &[Rewritten]))),
            ("javascript:alert(1)", Err(NotAUrl)),
            ("data:text/html,x", Err(NotAUrl)),
            ("file:///etc/passwd", Err(NotAUrl)),
            ("mailto:a@b.example", Err(NotAUrl)),
            ("pay.example/a", Err(NotAUrl)),
            ("https://", Err(NotAUrl)),
            ("", Err(NotAUrl)),
        ] {
            check(text, expected);
        }
    }
}
