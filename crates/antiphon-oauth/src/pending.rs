//! A sign-in between its two halves: the URL that a person opens, and the address to which the browser returns.

use crate::{
    credentials::Registration,
    error::{Error, ErrorKind, Secret},
    jose::{random_text, seconds},
};
use antiphon_wire::escaped;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    time::{Duration, SystemTime},
};
use url::Url;

/// The time in which a sign-in must end.
const SIGN_IN_TIME: Duration = Duration::from_secs(60 * 60);

/// A sign-in that waits for a person: plain data, which another process may finish.
///
/// It holds secrets, the verifier of PKCE among them: a web host stores it in the session of the person who signs in, and
/// nowhere else. `Debug` does not show them.
///
/// > MCP clients **MUST** record the `issuer` value from the authorization server's validated metadata .. prior to redirecting
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingSignIn {
    pub(crate) basis: Basis,
    pub(crate) url: String,
    /// `true` if the metadata says that answers name the issuer.
    pub(crate) names_issuer: bool,
    pub(crate) redirect_uri: String,
    verifier: Secret,
    state: Secret,
    since: u64,
}

/// The parts of every sign-in that are known before a person answers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Basis {
    pub(crate) server: String,
    pub(crate) account: String,
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) client: Registration,
    pub(crate) resource: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// The private key of DPoP, as base64url text.
    pub(crate) dpop_key: Option<Secret>,
    /// `true` if a token without a proof of possession must not be used.
    pub(crate) dpop_required: bool,
}

impl PendingSignIn {
    /// Begins a sign-in at an authorization endpoint. `more` are parameters of the settings, which replace none of the protocol.
    pub(crate) fn begin(
        basis: Basis,
        (redirect_uri, names_issuer): (&str, bool),
        mut endpoint: Url,
        more: &[(String, String)],
        now: SystemTime,
    ) -> Result<Self, Error> {
        let (verifier, state) = (random_text(32)?, random_text(16)?);
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let scope = basis.scopes.join(" ");
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", &basis.client.client_id),
            ("redirect_uri", redirect_uri),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        // > MCP clients **MUST** send this parameter regardless of whether authorization servers support it.
        pairs.extend(basis.resource.as_deref().map(|resource| ("resource", resource)));
        pairs.extend(Some(("scope", &*scope)).filter(|_| !scope.is_empty()));
        // OpenID Connect Core, section 11: without consent, `offline_access` is ignored.
        if crate::token::is_offline(&basis.scopes) && !more.iter().any(|(name, _)| name == "prompt") {
            pairs.push(("prompt", "consent"));
        }
        let own: Vec<&str> = pairs.iter().map(|(name, _)| *name).collect();
        let more: Vec<_> = more.iter().filter(|(name, _)| !own.contains(&&**name)).collect();
        endpoint.query_pairs_mut().extend_pairs(&pairs).extend_pairs(more);
        Ok(Self {
            url: endpoint.into(),
            basis,
            names_issuer,
            redirect_uri: redirect_uri.to_owned(),
            verifier: verifier.into(),
            state: state.into(),
            since: seconds(now),
        })
    }

    /// The URL that the person opens in a browser.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of the resource server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.basis.server
    }

    /// The issuer that the person signs in at.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.basis.issuer
    }

    /// The address to which the browser returns.
    #[must_use]
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The requested scopes; empty if the server chooses.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.basis.scopes
    }

    /// `state` of this sign-in, by which a host finds it when the browser returns.
    #[must_use]
    pub fn state(&self) -> &str {
        self.state.expose()
    }

    pub(crate) fn verifier(&self) -> &str {
        self.verifier.expose()
    }

    /// Returns the code in the address to which the browser returned. The order of the checks matters: until `state` and `iss` are
    /// right, nothing of the answer is believed or shown.
    pub(crate) fn code(&self, returned: &str, now: SystemTime) -> Result<Secret, Error> {
        let unbelieved = |why: &str| {
            Error::new(ErrorKind::Callback, format!("the answer to the sign-in is refused: {why}"))
        };
        let url = Url::parse(returned.trim()).map_err(|_| unbelieved("it is no URL"))?;
        let is_here = Url::parse(&self.redirect_uri).is_ok_and(|own| {
            (own.scheme(), own.host_str(), own.port_or_known_default(), own.path())
                == (url.scheme(), url.host_str(), url.port_or_known_default(), url.path())
        });
        if !is_here {
            return Err(unbelieved("it is not at the redirect URI of this sign-in"));
        }
        let one = |name: &str| {
            let mut all = url.query_pairs().filter(|(found, _)| found == name).map(|(_, value)| value);
            match (all.next(), all.next()) {
                (first, None) => Ok(first),
                (_, Some(_)) => Err(unbelieved("a parameter is there twice")),
            }
        };
        // > MCP clients **SHOULD** use and verify state parameters .. and discard any results that do not include or have a mismatch
        if !one("state")?.is_some_and(|state| same(state.as_bytes(), self.state.expose().as_bytes())) {
            return Err(unbelieved("its state is not the one of this sign-in"));
        }
        self.check_issuer(one("iss")?.as_deref())?;
        let begin = std::time::UNIX_EPOCH.checked_add(Duration::from_secs(self.since));
        if begin.and_then(|begin| begin.checked_add(SIGN_IN_TIME)).is_none_or(|end| now >= end) {
            return Err(unbelieved("the sign-in began too long ago: begin again"));
        }
        if let Some(code) = one("error")? {
            let description = one("error_description")?.map(|text| format!(": {}", escaped(&text)));
            let text = format!(
                "the authorization server {} refused the sign-in: {}{}",
                escaped(&self.basis.issuer),
                escaped(&code),
                description.unwrap_or_default()
            );
            return Err(Error::new(ErrorKind::Denied, text));
        }
        let code =
            one("code")?.filter(|code| !code.is_empty()).ok_or_else(|| unbelieved("it has no code"))?;
        Ok(Secret::new(code))
    }

    /// The table of RFC 9207 in the specification. The values are compared byte by byte.
    ///
    /// > Clients **MUST NOT** act on or display `error`, `error_description`, or `error_uri` values
    fn check_issuer(&self, found: Option<&str>) -> Result<(), Error> {
        match (self.names_issuer, found) {
            (_, Some(found)) if found == self.basis.issuer => Ok(()),
            (false, None) => Ok(()),
            (true, None) => Err(Error::new(
                ErrorKind::Issuer,
                format!(
                    "the answer to the sign-in does not name its issuer, which {} always does: it is refused",
                    escaped(&self.basis.issuer)
                ),
            )),
            (_, Some(_)) => Err(Error::new(
                ErrorKind::Issuer,
                format!(
                    "the answer to the sign-in is of another issuer than {}: it is refused",
                    escaped(&self.basis.issuer)
                ),
            )),
        }
    }
}

/// Compares two secrets in a time that depends on their length only.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSignIn")
            .field("server", &self.basis.server)
            .field("issuer", &self.basis.issuer)
            .field("scopes", &self.basis.scopes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::{Method, Source};

    const REDIRECT_URI: &str = "http://127.0.0.1:99/callback";

    fn basis() -> Basis {
        let issuer = "https://as.example".to_owned();
        Basis {
            server: "https://a.example/mcp".into(),
            account: String::new(),
            token_endpoint: "https://as.example/token".into(),
            revocation_endpoint: None,
            client: Registration {
                issuer: issuer.clone(),
                client_id: "me".into(),
                client_secret: None,
                method: Method::None,
                redirect_uri: None,
                secret_expires_at: None,
                scopes: None,
                source: Source::Document,
            },
            resource: Some("https://a.example".into()),
            scopes: vec!["a".into(), "offline_access".into()],
            dpop_key: None,
            dpop_required: false,
            issuer,
        }
    }

    #[test]
    fn the_url_has_what_the_specification_demands() {
        let endpoint = Url::parse("https://as.example/authorize?tenant=1").unwrap();
        let more = [("login_hint", "me"), ("state", "mine"), ("resource", "mine")];
        let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let begun =
            PendingSignIn::begin(basis(), (REDIRECT_URI, true), endpoint, &more, SystemTime::now()).unwrap();
        let url = Url::parse(begun.url()).unwrap();
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let get = |name: &str| {
            let all: Vec<&str> =
                pairs.iter().filter(|(found, _)| found == name).map(|(_, value)| &**value).collect();
            let [one] = all[..] else { panic!("{name}: {all:?}") };
            one.to_owned()
        };
        for (name, value) in [
            ("tenant", "1"),
            ("response_type", "code"),
            ("client_id", "me"),
            ("redirect_uri", REDIRECT_URI),
            ("code_challenge_method", "S256"),
            // Byte by byte: no slash is added.
            ("resource", "https://a.example"),
            ("scope", "a offline_access"),
            ("prompt", "consent"),
            ("login_hint", "me"),
        ] {
            assert_eq!(get(name), value, "{name}");
        }
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, begun.verifier().as_bytes()));
        assert_eq!(get("code_challenge"), challenge);
        assert_eq!((get("state").len(), begun.verifier().len()), (22, 43));
        assert!(
            !format!("{begun:?}").contains(begun.verifier()) && !format!("{begun:?}").contains(begun.state())
        );
    }

    #[test]
    fn answers_that_are_believed() {
        let endpoint = Url::parse("https://as.example/authorize").unwrap();
        let here = "http://127.0.0.1:99/callback?";
        let iss = "iss=https%3A%2F%2Fas.example";
        let check = |names_issuer: bool, returned: &str, expected: Result<&str, ErrorKind>| {
            let now = SystemTime::now();
            let begun =
                PendingSignIn::begin(basis(), (REDIRECT_URI, names_issuer), endpoint.clone(), &[], now)
                    .unwrap();
            let returned = returned.replace("STATE", begun.state());
            let found = begun.code(&returned, now);
            if let Err(fault) = &found {
                assert!(fault.kind() == ErrorKind::Denied || !fault.to_string().contains("evil"), "{fault}");
            }
            let found = found.as_ref().map(Secret::expose).map_err(Error::kind);
            assert_eq!(found, expected, "{names_issuer} {returned}");
        };
        check(true, &format!("{here}code=c&state=STATE&{iss}"), Ok("c"));
        check(false, &format!("{here}code=c&state=STATE&{iss}"), Ok("c"));
        check(false, &format!("{here}code=c&state=STATE"), Ok("c"));
        check(false, &format!(" {here}code=c&state=STATE\n"), Ok("c"));
        // RFC 9207.
        check(true, &format!("{here}code=c&state=STATE"), Err(ErrorKind::Issuer));
        check(true, &format!("{here}code=c&state=STATE&iss=https://evil.example"), Err(ErrorKind::Issuer));
        check(false, &format!("{here}code=c&state=STATE&iss=https://evil.example"), Err(ErrorKind::Issuer));
        check(true, &format!("{here}code=c&state=STATE&iss=https://as.example/"), Err(ErrorKind::Issuer));
        check(true, &format!("{here}code=c&state=STATE&iss=HTTPS://as.example"), Err(ErrorKind::Issuer));
        check(true, &format!("{here}code=c&state=STATE&iss="), Err(ErrorKind::Issuer));
        // An error is read only after that.
        let error = "error=access_denied&error_description=evil";
        check(true, &format!("{here}{error}&state=STATE&{iss}"), Err(ErrorKind::Denied));
        check(true, &format!("{here}{error}&state=STATE"), Err(ErrorKind::Issuer));
        check(true, &format!("{here}{error}&{iss}"), Err(ErrorKind::Callback));
        check(true, &format!("{here}{error}&state=evil&{iss}"), Err(ErrorKind::Callback));
        // Others.
        check(true, &format!("{here}state=STATE&{iss}"), Err(ErrorKind::Callback));
        check(true, &format!("{here}code=&state=STATE&{iss}"), Err(ErrorKind::Callback));
        check(true, &format!("{here}code=c&code=d&state=STATE&{iss}"), Err(ErrorKind::Callback));
        check(true, &format!("{here}code=c&state=STATE&{iss}&iss=evil"), Err(ErrorKind::Callback));
        check(true, &format!("{here}code=c&state=&{iss}"), Err(ErrorKind::Callback));
        check(
            true,
            &format!("http://127.0.0.1:98/callback?code=c&state=STATE&{iss}"),
            Err(ErrorKind::Callback),
        );
        check(true, &format!("http://127.0.0.1:99/other?code=c&state=STATE&{iss}"), Err(ErrorKind::Callback));
        check(true, "c", Err(ErrorKind::Callback));
    }

    #[test]
    fn a_sign_in_is_data_and_ends() {
        let endpoint = Url::parse("https://as.example/authorize").unwrap();
        let now = SystemTime::now();
        let begun = PendingSignIn::begin(basis(), (REDIRECT_URI, false), endpoint, &[], now).unwrap();
        let text = serde_json::to_string(&begun).unwrap();
        let other: PendingSignIn = serde_json::from_str(&text).unwrap();
        let returned = format!("http://127.0.0.1:99/callback?code=c&state={}", begun.state());
        assert_eq!(other.code(&returned, now).unwrap().expose(), "c");
        let late = other.code(&returned, now + SIGN_IN_TIME + Duration::from_secs(1));
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Callback);
    }
}
