//! Requests to the token endpoint, and their answers.

use crate::{
    credentials::Registration,
    dpop::{DPOP, DpopKey, Nonces},
    error::{Error, ErrorKind, Secret},
    jose::SigningKey,
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

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_connect::Reach;
    use http::StatusCode;

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
}
