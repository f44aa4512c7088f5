//! The parts of a URL to show before a person opens it. Nothing here fetches anything.
//!
//! > MUST NOT automatically pre-fetch the URL or any of its metadata.

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
    /// The scheme is neither http nor https: another program than a browser opens the URL.
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
            Self::OtherScheme => "not a web address: another program would open it",
            Self::Rewritten => "the server wrote it in a misleading way",
        })
    }
}

/// The text cannot be opened as a URL with a host: the server's fault.
///
/// > The `url` parameter **MUST** contain a valid URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAUrl;

impl fmt::Display for NotAUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server sent a URL that is not valid or has no host; it must not be opened")
    }
}

impl StdError for NotAUrl {}

/// Parses a URL as browsers do, and returns the parts to show. Open [`UrlConsent::full`], not the server's text.
///
/// # Errors
/// [`NotAUrl`].
pub fn show_url(text: &str) -> Result<UrlConsent, NotAUrl> {
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
    text.contains(|c: char| c == '\\' || c.is_control() || is_invisible(c))
        || text.trim() != text
        || !slashes.starts_with("://")
        || slashes.starts_with(":///")
}

/// Returns `true` for characters that change the direction of a text, or are invisible.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}')
}

#[cfg(test)]
mod tests {
    use super::{UrlWarning::*, *};

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
            ("ftp://a.example/x", Ok(("ftp://a.example/x", "a.example", &[OtherScheme]))),
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
