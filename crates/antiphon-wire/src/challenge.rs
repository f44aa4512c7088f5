//! The challenges of `WWW-Authenticate`: RFC 9110, section 11.6.1. The schemes of URLs to which credentials
//! go.

use std::net::IpAddr;

/// The maximum number of challenges that are read of one response, and of parameters of one challenge.
const MAX_CHALLENGES: usize = 16;
const MAX_PARAMETERS: usize = 32;
/// The maximum number of bytes that are read of all fields together.
const MAX_BYTES: usize = 16 * 1024;

/// One challenge: a scheme, with a token or with parameters.
///
/// ```
/// use antiphon_wire::Challenge;
///
/// let challenges = Challenge::parse_all([r#"Basic realm="a, b", Bearer error="invalid_token""#]);
/// assert!(challenges[0].is("basic"));
/// assert_eq!(challenges[0].get("realm"), Some("a, b"));
/// assert_eq!(challenges[1].get("error"), Some("invalid_token"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Challenge {
    scheme: String,
    token: Option<String>,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Reads the challenges in the values of a field, in their order. A field may hold several challenges, and challenges may
    /// stand in several fields. A text that is no challenge is left out, up to the next comma.
    ///
    /// At most 16 challenges are read, each with at most 32 parameters, of at most 16 KiB.
    pub fn parse_all<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        for value in values {
            bytes += value.len();
            if bytes > MAX_BYTES {
                break;
            }
            Reader { rest: value }.read(&mut found);
        }
        found
    }

    /// Returns `true` if the challenge has this scheme, in any case.
    #[must_use]
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The scheme, as it was sent.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The token of a challenge such as `Negotiate a87421000492aa8==`.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns the value of a parameter, without quotes. The case of the name does not matter. If the parameter is there
    /// several times, which is not allowed, the first value counts.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }
}

/// The rest of one value.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn read(&mut self, found: &mut Vec<Challenge>) {
        // The challenge to which parameters belong: none before the first one, and after a text that is no challenge.
        let mut open = false;
        loop {
            self.skip(|c| is_blank(c) || c == ',');
            if self.rest.is_empty() {
                return;
            }
            match self.parameter() {
                Some((name, value)) => {
                    if let Some(last) = found.last_mut().filter(|_| open)
                        && last.parameters.len() < MAX_PARAMETERS
                    {
                        last.parameters.push((name.to_owned(), value));
                    }
                }
                None => {
                    let scheme = self.take(is_token);
                    open = !scheme.is_empty() && found.len() < MAX_CHALLENGES;
                    if open {
                        found.push(self.challenge(scheme));
                    }
                }
            }
            // What stands before the next comma, other than a parameter behind a scheme, has no meaning.
            if !(self.at_item_end() || open && self.begins_parameter()) {
                self.skip(|c| c != ',');
            }
        }
    }

    /// A scheme, with its token if it has one. Its parameters follow.
    fn challenge(&mut self, scheme: &str) -> Challenge {
        let mut challenge = Challenge { scheme: scheme.to_owned(), token: None, parameters: Vec::new() };
        let before = self.rest;
        self.skip(is_blank);
        let token = self.take(is_token68);
        let length = token.len() + self.take(|c| c == '=').len();
        if token.is_empty() || !self.at_item_end() {
            self.rest = before;
            return challenge;
        }
        challenge.token = Some(before.trim_start_matches(is_blank)[..length].to_owned());
        challenge
    }

    /// `name = value` or `name = "value"`, and what is behind it up to a comma stays.
    fn parameter(&mut self) -> Option<(&'a str, String)> {
        let before = self.rest;
        let name = self.take(is_token);
        self.skip(is_blank);
        let Some(after) = self.rest.strip_prefix('=').filter(|_| !name.is_empty()) else {
            self.rest = before;
            return None;
        };
        self.rest = after;
        self.skip(is_blank);
        match self.rest.strip_prefix('"') {
            Some(quoted) => {
                self.rest = quoted;
                Some((name, self.quoted()))
            }
            None => Some((name, self.take(|c| !is_blank(c) && c != ',' && c != '"').to_owned())),
        }
    }

    /// The text up to the closing quote, or up to the end if there is none.
    fn quoted(&mut self) -> String {
        let mut text = String::new();
        let mut characters = self.rest.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => break,
                '\\' => text.extend(characters.next()),
                other => text.push(other),
            }
        }
        self.rest = characters.as_str();
        text
    }

    fn begins_parameter(&self) -> bool {
        let mut ahead = Reader { rest: self.rest.trim_start_matches(is_blank) };
        !ahead.take(is_token).is_empty() && ahead.rest.trim_start_matches(is_blank).starts_with('=')
    }

    fn at_item_end(&self) -> bool {
        let rest = self.rest.trim_start_matches(is_blank);
        rest.is_empty() || rest.starts_with(',')
    }

    fn take(&mut self, matches: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !matches(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn skip(&mut self, matches: impl Fn(char) -> bool) {
        self.take(matches);
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

fn is_token(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}

fn is_token68(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~+/".contains(character)
}

/// Checks the scheme and the host of a URL of an authorization server or of a protected resource. `host` is as the `url` crate
/// returns it, an IPv6 address in brackets.
///
/// > All authorization server endpoints **MUST** be served over HTTPS.
///
/// # Errors
/// The reason, if the URL is neither `https` nor `http` on this machine itself.
pub fn check_secure(scheme: &str, host: Option<&str>) -> Result<(), &'static str> {
    let host = host.ok_or("it has no host")?;
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match scheme {
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        _ => Err("it must be https, or http on this machine itself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes challenges so that each part can be seen: `scheme(token) name=value|..`.
    fn shown(values: &[&str]) -> String {
        let one = |challenge: &Challenge| {
            let parameters: Vec<String> =
                challenge.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let token = challenge.token.as_ref().map(|token| format!("({token})")).unwrap_or_default();
            format!("{}{token} {}", challenge.scheme, parameters.join("|")).trim_end().to_owned()
        };
        Challenge::parse_all(values.iter().copied()).iter().map(one).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn challenges_of_fields() {
        for (values, expected) in [
            (&[][..], ""),
            (&[""], ""),
            (&["Bearer"], "Bearer"),
            (&["Bearer realm=\"a\", error=invalid_token"], "Bearer realm=a|error=invalid_token"),
            (&["Bearer, DPoP algs=\"ES256\""], "Bearer; DPoP algs=ES256"),
            (&["Bearer a=1", "DPoP b=2"], "Bearer a=1; DPoP b=2"),
            // The example of RFC 9110.
            (
                &["Basic realm=\"simple\", Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\""],
                "Basic realm=simple; Newauth realm=apps|type=1|title=Login to \"apps\"",
            ),
            (&["Negotiate a87421000492aa8==, Basic realm=x"], "Negotiate(a87421000492aa8==); Basic realm=x"),
            (&["Negotiate abc="], "Negotiate(abc=)"),
            (&[", ,Bearer ,, a=1 , "], "Bearer a=1"),
            (&["Bearer a = \"x\" , b\t=y"], "Bearer a=x|b=y"),
            // A challenge inside of a text is none.
            (
                &["Bearer error_description=\"no, Bearer error=\\\"insufficient_scope\\\"\", error=a"],
                "Bearer error_description=no, Bearer error=\"insufficient_scope\"|error=a",
            ),
            // Faults: the rest stays readable.
            (&["Bearer scope=a b, error=c"], "Bearer scope=a|error=c"),
            (&["Bearer a=\"open"], "Bearer a=open"),
            (&["Bearer a=\"open\\"], "Bearer a=open"),
            (&["\"text\", Bearer a=1"], "Bearer a=1"),
            (&["a=1, Bearer b=2"], "Bearer b=2"),
            (&["Bearer a=1 b=2"], "Bearer a=1|b=2"),
            (&["Bearer é=1, x=2"], "Bearer x=2"),
        ] {
            assert_eq!(shown(values), expected, "{values:?}");
        }
    }

    #[test]
    fn names_have_no_case_and_the_first_value_counts() {
        let challenges = Challenge::parse_all(["bearer ERROR=a, error=b"]);
        assert!(challenges[0].is("Bearer") && !challenges[0].is("Basic"));
        assert_eq!((challenges[0].get("Error"), challenges[0].get("x")), (Some("a"), None));
    }

    #[test]
    fn their_number_is_limited() {
        let many = "A a=1,".repeat(MAX_CHALLENGES + 9);
        assert_eq!(Challenge::parse_all([&*many]).len(), MAX_CHALLENGES);
        let long = format!("A {}", "a=1,".repeat(MAX_PARAMETERS + 9));
        assert_eq!(Challenge::parse_all([&*long])[0].parameters.len(), MAX_PARAMETERS);
        let padded = format!("A a=\"{}\"", "x".repeat(MAX_BYTES));
        assert_eq!(Challenge::parse_all(["B", &padded]).len(), 1);
    }

    #[test]
    fn http_only_on_this_machine() {
        let check = |scheme: &str, host: Option<&str>, expected: bool| {
            assert_eq!(check_secure(scheme, host).is_ok(), expected, "{scheme} {host:?}");
        };
        check("https", Some("auth.example.com"), true);
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            check("http", Some(host), true);
            check("ftp", Some(host), false);
        }
        for host in ["auth.example.com", "localhost.example.com", "10.0.0.1", "0.0.0.0", "[::2]", "[fe80::1]"]
        {
            check("http", Some(host), false);
        }
        check("https", None, false);
    }
}
