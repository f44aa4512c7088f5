//! Requests to the token endpoint, their answers, and scopes: which ones are requested, and whether a token has them.

use crate::{
    credentials::Registration,
    discover::{Authority, Resource},
    error::{Error, ErrorKind, Secret},
    jose::{DPOP, DpopKey, Nonces, SigningKey},
    net::{Answer, Net},
};
use antiphon_wire::escaped;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use std::{fmt, time::SystemTime};
use url::{Url, form_urlencoded::Serializer};

/// The token endpoint of one authorization server, as one client uses it.
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) net: Net,
    pub(crate) url: Url,
    pub(crate) issuer: &'a str,
    /// `None` if the grant needs no client.
    pub(crate) client: Option<&'a Registration>,
    pub(crate) key: Option<&'a SigningKey>,
    pub(crate) dpop: Option<&'a DpopKey>,
    pub(crate) nonces: &'a Nonces,
    pub(crate) now: SystemTime,
}

/// The tokens of one answer.
pub(crate) struct Tokens {
    pub(crate) access_token: Secret,
    pub(crate) scheme: Scheme,
    pub(crate) expires_in: Option<u64>,
    pub(crate) refresh_token: Option<Secret>,
    pub(crate) scope: Option<String>,
    /// The type of a token that was exchanged for another one.
    pub(crate) issued_type: Option<String>,
}

/// The type of a token, which decides how a request has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Bearer,
    Dpop,
    /// None: a token that is an assertion.
    None,
}

/// The reason why there is no token.
pub(crate) enum TokenFault {
    /// The server refused with this code.
    Refused {
        code: String,
        error: Error,
    },
    Other(Error),
}

impl From<TokenFault> for Error {
    fn from(fault: TokenFault) -> Self {
        match fault {
            TokenFault::Refused { error, .. } | TokenFault::Other(error) => error,
        }
    }
}

impl From<Error> for TokenFault {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl TokenFault {
    /// Returns the fault of an answer that refuses: `what` has not happened.
    pub(crate) fn of(answer: &Answer, what: &str) -> Self {
        let is_down = answer.status.is_server_error();
        let kind = if is_down { ErrorKind::Network } else { ErrorKind::Token };
        let text = |why: &str| Error::new(kind, format!("{what}: {why}"));
        let Ok(WrittenError { error: code, error_description }) = answer.json() else {
            return Self::Other(text(&format!("it answered {}", answer.status)));
        };
        let description = error_description.map(|text| format!(": {}", escaped(&text))).unwrap_or_default();
        let error = text(&format!("it answered {}{description}", escaped(&code)));
        Self::Refused { code, error }
    }

    pub(crate) fn is(&self, codes: &[&str]) -> bool {
        matches!(self, Self::Refused { code, .. } if codes.contains(&&**code))
    }
}

#[derive(Deserialize)]
struct Written {
    access_token: Secret,
    token_type: String,
    /// A number of seconds; some servers write it as a text.
    expires_in: Option<Value>,
    refresh_token: Option<Secret>,
    scope: Option<String>,
    issued_token_type: Option<String>,
}

#[derive(Deserialize)]
struct WrittenError {
    error: String,
    error_description: Option<String>,
}

impl TokenEndpoint<'_> {
    /// Sends a request with these parameters, and once more if the server demands its nonce in the proof.
    pub(crate) async fn request(&self, parameters: &[(&str, &str)]) -> Result<Tokens, TokenFault> {
        let first = self.send(parameters).await?;
        let has_new_nonce = self.nonces.keep(&self.url, &first.headers);
        let answer = match self.read(&first) {
            // > the authorization server responds .. with `use_dpop_nonce`
            Err(fault) if has_new_nonce && self.dpop.is_some() && fault.is(&["use_dpop_nonce"]) => {
                let second = self.send(parameters).await?;
                self.nonces.keep(&self.url, &second.headers);
                self.read(&second)
            }
            other => other,
        }?;
        if answer.scheme == Scheme::Dpop && self.dpop.is_none() {
            return Err(self.unusable("the token is bound to a key, and there is none").into());
        }
        Ok(answer)
    }

    async fn send(&self, parameters: &[(&str, &str)]) -> Result<Answer, Error> {
        let mut headers = HeaderMap::new();
        let form = {
            let mut form = Serializer::new(String::new());
            form.extend_pairs(parameters);
            if let Some(client) = self.client {
                client.authenticate(self.key, &mut headers, &mut form, self.now)?;
            }
            form.finish()
        };
        if let Some(key) = self.dpop {
            let nonce = self.nonces.get(&self.url);
            headers.insert(DPOP, key.proof("POST", &self.url, None, nonce.as_deref(), self.now)?);
        }
        self.net.post_form(&self.url, headers, &form).await
    }

    fn read(&self, answer: &Answer) -> Result<Tokens, TokenFault> {
        if !answer.status.is_success() {
            return Err(TokenFault::of(answer, &self.no_token()));
        }
        // The error of serde_json quotes nothing of a value of a wrong type but numbers and short texts: it is not repeated.
        let written: Written = answer.json().map_err(|_| self.unusable("its answer holds no token"))?;
        let scheme = match written.token_type.to_ascii_lowercase().as_str() {
            "bearer" => Scheme::Bearer,
            "dpop" => Scheme::Dpop,
            "n_a" if written.issued_token_type.is_some() => Scheme::None,
            other => {
                let text = format!("its token is of the unknown type {}", escaped(other));
                return Err(self.unusable(&text).into());
            }
        };
        let text = written.access_token.expose();
        if text.is_empty() || HeaderValue::try_from(text).is_err() {
            return Err(self.unusable("its token does not fit into a header").into());
        }
        let expires_in = written.expires_in.and_then(|value| match value {
            Value::Number(number) => {
                number.as_u64().or_else(|| number.as_f64().map(|seconds| seconds as u64))
            }
            Value::String(text) => text.parse().ok(),
            _ => None,
        });
        Ok(Tokens {
            access_token: written.access_token,
            scheme,
            expires_in,
            refresh_token: written.refresh_token.filter(|token| !token.expose().is_empty()),
            scope: written.scope,
            issued_type: written.issued_token_type,
        })
    }

    fn unusable(&self, why: &str) -> Error {
        Error::new(ErrorKind::Token, format!("{}: {why}", self.no_token()))
    }

    fn no_token(&self) -> String {
        format!("the authorization server {} issued no token", escaped(self.issuer))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// The scope with which some authorization servers issue refresh tokens.
const OFFLINE: &str = "offline_access";

/// The scopes in a text, in their order, each once.
pub(crate) fn parse(text: &str) -> Vec<String> {
    union(&[], text.split_ascii_whitespace())
}

/// The first scopes, and those of the second that are not among them.
pub(crate) fn union<'a>(first: &[String], second: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut all = first.to_vec();
    for scope in second {
        if !all.iter().any(|known| known == scope) {
            all.push(scope.to_owned());
        }
    }
    all
}

/// Returns `true` if all of the needed scopes are there.
pub(crate) fn covers(granted: &[String], needed: &[String]) -> bool {
    needed.iter().all(|scope| granted.contains(scope))
}

/// The source of scopes for one request.
pub(crate) struct ScopeSources<'a> {
    /// `scope` of the challenge.
    pub(crate) challenged: Option<&'a str>,
    /// The scopes of the last request for the same resource.
    pub(crate) before: &'a [String],
    pub(crate) resource: Option<&'a Resource>,
    pub(crate) authority: &'a Authority,
    /// The scopes of the settings.
    pub(crate) always: &'a [String],
    /// `true` if a refresh token is of use.
    pub(crate) offline: bool,
}

/// Selects the scopes of a request.
///
/// > 1. Use `scope` parameter from the initial `WWW-Authenticate` header in the 401 response, if provided.
/// > 2. If `scope` is not available, use all scopes defined in `scopes_supported` from the Protected Resource Metadata document,
/// >    omitting the `scope` parameter if `scopes_supported` is undefined.
///
/// Scopes that were requested before are requested again with those of a challenge: otherwise each step up would lose what the
/// last one got.
pub(crate) fn select(sources: &ScopeSources<'_>) -> Vec<String> {
    let supported = sources.resource.and_then(|resource| resource.scopes_supported.as_deref());
    let base = match sources.challenged {
        Some(challenged) => union(sources.before, challenged.split_ascii_whitespace()),
        None if !sources.before.is_empty() => sources.before.to_vec(),
        None => union(&[], supported.unwrap_or_default().iter().map(String::as_str)),
    };
    let mut all = union(&base, sources.always.iter().map(String::as_str));
    // > MCP Clients that desire refresh tokens **MAY** add `offline_access` .. when the Authorization Server metadata contains it
    // Alone it would take the place of the scopes that the server gives without a request.
    if sources.offline && !all.is_empty() && sources.authority.has_scope(OFFLINE) {
        all = union(&all, [OFFLINE]);
    }
    all
}

/// Returns `true` if a person is to agree to a refresh token.
pub(crate) fn is_offline(scopes: &[String]) -> bool {
    scopes.iter().any(|scope| scope == OFFLINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_connect::Reach;
    use http::StatusCode;
    use serde_json::json;

    #[test]
    fn answers_of_a_token_endpoint() {
        let nonces = Nonces::default();
        let endpoint = TokenEndpoint {
            net: Net { reach: Reach::Public },
            url: Url::parse("https://as.example/token").unwrap(),
            issuer: "https://as.example",
            client: None,
            key: None,
            dpop: None,
            nonces: &nonces,
            now: SystemTime::now(),
        };
        let read = |status: u16, body: &str| {
            let answer = Answer {
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::new(),
                body: body.as_bytes().to_vec().into(),
            };
            match endpoint.read(&answer) {
                Ok(tokens) => format!(
                    "{} {:?} {:?} {:?}",
                    tokens.access_token.expose(),
                    tokens.expires_in,
                    tokens.refresh_token.as_ref().map(Secret::expose),
                    tokens.scope
                ),
                Err(fault) => Error::from(fault).to_string(),
            }
        };
        let no = |why: &str| format!("the authorization server https://as.example issued no token: {why}");
        for (status, body, expected) in [
            (200, r#"{"access_token":"t","token_type":"bearer"}"#, "t None None None".to_owned()),
            (
                200,
                r#"{"access_token":"t","token_type":"Bearer","expires_in":"60","refresh_token":"r","scope":"a b"}"#,
                r#"t Some(60) Some("r") Some("a b")"#.to_owned(),
            ),
            (
                200,
                r#"{"access_token":"t","token_type":"Bearer","expires_in":59.9,"refresh_token":""}"#,
                "t Some(59) None None".to_owned(),
            ),
            (200, r#"{"access_token":"t","token_type":"mac"}"#, no("its token is of the unknown type mac")),
            (
                200,
                r#"{"access_token":"a\nb","token_type":"Bearer"}"#,
                no("its token does not fit into a header"),
            ),
            (200, r#"{"access_token":"","token_type":"Bearer"}"#, no("its token does not fit into a header")),
            (200, r#"{"access_token":{"secret":1}}"#, no("its answer holds no token")),
            (
                400,
                r#"{"error":"invalid_grant","error_description":"no\u001b[2J"}"#,
                no("it answered invalid_grant: no\\u{1b}[2J"),
            ),
            (502, "<html>", no("it answered 502 Bad Gateway")),
        ] {
            assert_eq!(read(status, body), expected, "{body}");
        }
    }

    #[test]
    fn which_scopes_are_requested() {
        let cases = [
            // challenge, before, scopes_supported of the resource, of the settings, of the authorization server: expected
            (Some("a b"), "", Some("c"), "", "", "a b"),
            (None, "", Some("c d"), "", "", "c d"),
            (None, "", None, "", "", ""),
            (None, "", None, "", "offline_access", ""),
            (None, "", Some("c"), "x", "", "c x"),
            (Some("a"), "", None, "a x", "offline_access", "a x offline_access"),
            // A step up is a union.
            (Some("b"), "a", Some("c"), "", "", "a b"),
            (Some("a"), "a offline_access", None, "", "offline_access", "a offline_access"),
            // A new sign-in without a challenge keeps what was requested.
            (None, "a b", Some("c"), "", "", "a b"),
        ];
        for (challenged, before, resource, always, server, expected) in cases {
            let resource: Option<Resource> = resource.map(|scopes| {
                serde_json::from_value(json!({"resource": "https://a", "scopes_supported": parse(scopes)}))
                    .unwrap()
            });
            let authority = Authority { scopes_supported: Some(parse(server)), ..Authority::default() };
            let found = select(&ScopeSources {
                challenged,
                before: &parse(before),
                resource: resource.as_ref(),
                authority: &authority,
                always: &parse(always),
                offline: true,
            });
            assert_eq!(found.join(" "), expected, "{challenged:?} {before}");
        }
    }

    #[test]
    fn scopes_of_a_token() {
        assert!(covers(&parse("a b"), &parse("b")));
        assert!(!covers(&parse("a b"), &parse("b c")));
        assert_eq!(parse("  a  b a "), ["a", "b"]);
    }
}
