//! The state of the test servers, their switches, and their answers.

use crate::{
    device::DEVICE_CODE,
    testing::http::{Reply, Seen},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use url::Url;

#[derive(Default)]
pub(super) struct State {
    pub(super) attacks: HashSet<Attack>,
    pub(super) seen: Vec<Seen>,
    /// The number of codes, tokens and clients that were issued.
    issued: usize,
    /// The codes that were not spent, with the requests that they answer.
    codes: HashMap<String, HashMap<String, String>>,
    /// The codes of sign-ins at another device, with their scopes.
    devices: HashMap<String, String>,
    pub(super) device_answer: DeviceAnswer,
    /// The access tokens that are valid, with their scopes.
    pub(super) valid: HashMap<String, String>,
    /// The thumbprints of the keys that tokens are bound to.
    pub(super) keys: HashMap<String, String>,
    pub(super) binds: bool,
    /// The secrets of clients.
    pub(super) secrets: HashMap<String, String>,
    pub(super) issues_secrets: bool,
    /// The scopes that registered clients may request.
    scopes_of_clients: HashMap<String, String>,
    /// The scopes of the last sign-in.
    granted: String,
    refresh: HashSet<String>,
    spent: HashSet<String>,
    pub(super) expires_in: Option<u64>,
    pub(super) demands_scope: Option<String>,
    pub(super) supports_documents: bool,
    pub(super) forgot_clients: bool,
}

impl State {
    fn has(&self, attack: Attack) -> bool {
        self.attacks.contains(&attack)
    }

    pub(super) fn answer(&mut self, base: &str, seen: &Seen) -> Reply {
        match &*seen.path {
            "/.well-known/oauth-protected-resource/mcp" => self.resource_metadata(base),
            "/.well-known/oauth-authorization-server" => Reply::json(200, &self.metadata(base)),
            "/register" => self.register(seen),
            "/authorize" => self.authorize(base, seen),
            "/token" => self.token(base, seen),
            "/device" => self.device(base, seen),
            "/revoke" if !self.is_client(seen) => Reply::json(401, &json!({"error": "invalid_client"})),
            "/revoke" => {
                let token = seen.form().remove("token").unwrap_or_default();
                self.refresh.remove(&token);
                self.valid.remove(&token);
                Reply::empty(200)
            }
            "/mcp" => self.protected(base, seen),
            _ => Reply::empty(404),
        }
    }

    fn resource_metadata(&self, base: &str) -> Reply {
        let resource = if self.has(Attack::OtherResource) {
            "https://evil.example/mcp".to_owned()
        } else {
            format!("{base}/mcp")
        };
        let mut document = json!({"resource": resource, "authorization_servers": [base]});
        if self.binds {
            document["dpop_signing_alg_values_supported"] = json!(["ES256"]);
        }
        if self.has(Attack::HugeDocument) {
            document["padding"] = "x".repeat(300 * 1024).into();
        }
        Reply::json(200, &document)
    }

    fn metadata(&self, base: &str) -> Value {
        let methods = match (self.issues_secrets, self.secrets.is_empty()) {
            (true, _) => json!(["client_secret_basic"]),
            (false, false) => json!(["none", "client_secret_basic"]),
            (false, true) => json!(["none"]),
        };
        let mut document = json!({
            "issuer": self.issuer(base),
            "authorization_endpoint": format!("{base}/authorize?fixed=1"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "revocation_endpoint": format!("{base}/revoke"),
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": self.supports_documents,
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "device_authorization_endpoint": format!("{base}/device"),
        });
        if self.binds {
            document["dpop_signing_alg_values_supported"] = json!(["ES256"]);
        }
        for (attack, name, value) in [
            (Attack::IssuerOfMetadata, "issuer", json!("https://evil.example")),
            (Attack::NoPkce, "code_challenge_methods_supported", Value::Null),
            (Attack::PlainPkce, "code_challenge_methods_supported", json!(["plain"])),
            (Attack::ScriptEndpoint, "authorization_endpoint", json!("javascript:alert(1)")),
            (Attack::CloudEndpoint, "token_endpoint", json!("https://169.254.169.254/latest/token")),
            (Attack::InsecureEndpoint, "token_endpoint", json!("http://evil.example/token")),
        ] {
            if self.has(attack) {
                document[name] = value;
            }
        }
        document
    }

    fn register(&mut self, seen: &Seen) -> Reply {
        self.issued += 1;
        self.forgot_clients = false;
        let mut document: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        let id = format!("client-{}", self.issued);
        document["client_id"] = id.as_str().into();
        if let Some(scope) = document["scope"].as_str() {
            self.scopes_of_clients.insert(id.clone(), scope.to_owned());
        }
        if self.issues_secrets {
            let secret = format!("secret-of-{id}");
            document["client_secret"] = secret.as_str().into();
            self.secrets.insert(id, secret);
        }
        if self.has(Attack::OtherMethod) {
            document["token_endpoint_auth_method"] = "tls_client_auth".into();
        }
        Reply::json(201, &document)
    }

    fn authorize(&mut self, base: &str, seen: &Seen) -> Reply {
        self.issued += 1;
        self.granted = seen.query.get("scope").cloned().unwrap_or_default();
        let get = |name: &str| seen.query.get(name).cloned().unwrap_or_default();
        let code = format!("code-{}", self.issued);
        self.codes.insert(code.clone(), seen.query.clone());
        let mut pairs = vec![("code", code), ("state", get("state"))];
        let may = self.scopes_of_clients.get(&get("client_id"));
        if may.is_some_and(|may| !get("scope").split(' ').all(|one| may.split(' ').any(|all| all == one))) {
            pairs[0] = ("error", "invalid_scope".into());
        }
        if self.has(Attack::RefusesResource) && seen.query.contains_key("resource") {
            pairs[0] = ("error", "invalid_target".into());
        }
        let forged = self.has(Attack::ForgedError);
        if forged || self.has(Attack::TerminalText) {
            pairs[0] = ("error", "access_denied".into());
            pairs.push(("error_description", "evil\u{1b}[2J".into()));
        }
        if self.has(Attack::OtherState) {
            pairs[1].1 = "another".into();
        }
        if forged || self.has(Attack::IssuerOfAnswer) {
            pairs.push(("iss", "https://evil.example".into()));
        } else if !self.has(Attack::NoIssuerInAnswer) {
            pairs.push(("iss", self.issuer(base)));
        }
        match Url::parse_with_params(&get("redirect_uri"), &pairs) {
            Ok(url) => Reply::empty(302).with("Location", url),
            Err(_) => Reply::empty(400),
        }
    }

    fn token(&mut self, base: &str, seen: &Seen) -> Reply {
        let form = seen.form();
        let get = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let refused =
            |code: &str| Reply::json(400, &json!({"error": code, "error_description": "evil\u{1b}[2J"}));
        if self.has(Attack::RedirectedToken) {
            return Reply::empty(307).with("Location", format!("{base}/stolen"));
        }
        if self.has(Attack::BadGateway) {
            return Reply::empty(502);
        }
        if self.forgot_clients || !self.is_client(seen) {
            return refused("invalid_client");
        }
        if self.has(Attack::RefusesResource) && form.contains_key("resource") {
            return refused("invalid_target");
        }
        match get("grant_type") {
            "refresh_token" => {
                let token = get("refresh_token").to_owned();
                if !self.refresh.remove(&token) {
                    // A token that is spent twice was stolen: all of its family end.
                    if self.spent.contains(&token) {
                        self.refresh.clear();
                        self.valid.clear();
                    }
                    return refused("invalid_grant");
                }
                self.spent.insert(token);
            }
            "authorization_code" => {
                let Some(asked) = self.codes.remove(get("code")) else { return refused("invalid_grant") };
                let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, get("code_verifier").as_bytes()));
                let is_same = |name: &str| asked.get(name).map(String::as_str) == Some(get(name));
                if asked.get("code_challenge") != Some(&challenge) || !is_same("redirect_uri") {
                    return refused("invalid_grant");
                }
            }
            DEVICE_CODE => match self.device_answer {
                _ if !self.devices.contains_key(get("device_code")) => return refused("invalid_grant"),
                DeviceAnswer::Pending => return refused("authorization_pending"),
                DeviceAnswer::SlowDown => return refused("slow_down"),
                DeviceAnswer::Refuses => return refused("access_denied"),
                DeviceAnswer::Expired => return refused("expired_token"),
                DeviceAnswer::Agrees => {
                    self.granted = self.devices.remove(get("device_code")).unwrap_or_default();
                }
            },
            _ => {}
        }
        self.issue(get("scope"), seen)
    }

    /// Begins a sign-in at another device.
    fn device(&mut self, base: &str, seen: &Seen) -> Reply {
        if self.forgot_clients || !self.is_client(seen) {
            return Reply::json(401, &json!({"error": "invalid_client"}));
        }
        self.issued += 1;
        let (device, user) = (format!("device-{}", self.issued), format!("USER-{}", self.issued));
        self.devices.insert(device.clone(), seen.form().remove("scope").unwrap_or_default());
        let mut answer = json!({
            "device_code": device, "user_code": user, "expires_in": 600, "interval": 5,
            "verification_uri": format!("{base}/enter"),
            "verification_uri_complete": format!("{base}/enter?code={user}"),
        });
        for (attack, name, value) in [
            (Attack::TerminalCode, "user_code", "evil\u{1b}[2J"),
            (Attack::ScriptPage, "verification_uri", "javascript:alert(1)"),
        ] {
            if self.has(attack) {
                answer[name] = value.into();
            }
        }
        Reply::json(200, &answer)
    }

    /// Returns `false` if the client of a request has a secret, and the request has not.
    fn is_client(&self, seen: &Seen) -> bool {
        let form = seen.form();
        let basic = seen.headers.get("authorization").and_then(|value| value.strip_prefix("Basic "));
        let decoded =
            basic.and_then(|text| STANDARD.decode(text).ok()).and_then(|bytes| String::from_utf8(bytes).ok());
        let (id, secret) = match decoded.as_deref().and_then(|pair| pair.split_once(':')) {
            Some((id, secret)) => (Some(id), Some(secret)),
            None => {
                (form.get("client_id").map(String::as_str), form.get("client_secret").map(String::as_str))
            }
        };
        match id.and_then(|id| self.secrets.get(id)) {
            Some(known) => secret == Some(&**known),
            // A client that is not known to have a secret.
            None => id.is_some() || self.secrets.is_empty(),
        }
    }

    fn issuer(&self, base: &str) -> String {
        format!("{base}{}", if self.has(Attack::RootSlash) { "/" } else { "" })
    }

    fn issue(&mut self, scope: &str, seen: &Seen) -> Reply {
        self.issued += 1;
        let token = format!("token-{}", self.issued);
        let scopes = if scope.is_empty() { self.granted.clone() } else { scope.to_owned() };
        self.valid.insert(token.clone(), scopes);
        let key = seen.headers.get("dpop").filter(|_| self.binds).and_then(|proof| thumbprint(proof));
        let kind = if key.is_some() { "DPoP" } else { "Bearer" };
        let mut answer = json!({"access_token": token, "token_type": kind});
        if let Some(key) = key {
            self.keys.insert(token, key);
        }
        if let Some(seconds) = self.expires_in {
            let refresh = format!("refresh-{}", self.issued);
            self.refresh.insert(refresh.clone());
            answer["expires_in"] = seconds.into();
            answer["refresh_token"] = refresh.into();
        }
        if !scope.is_empty() {
            answer["scope"] = scope.into();
        }
        for (attack, name, value) in [
            (Attack::TokenWithNewline, "access_token", json!("a\r\nX-Evil: 1")),
            (Attack::UnknownTokenType, "token_type", json!("mac")),
            (Attack::EndlessToken, "expires_in", json!(u64::MAX)),
        ] {
            if self.has(attack) {
                answer[name] = value;
            }
        }
        Reply::json(200, &answer)
    }

    /// The resource server.
    fn protected(&mut self, base: &str, seen: &Seen) -> Reply {
        let pointer = format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
        let sent = seen.headers.get("authorization").and_then(|value| value.split_once(' '));
        let token = sent.filter(|(scheme, _)| ["Bearer", "DPoP"].contains(scheme)).map(|(_, token)| token);
        let is_valid =
            token.is_some_and(|token| self.valid.contains_key(token)) && !self.has(Attack::RefusesAll);
        if !is_valid {
            return Reply::empty(401).with("WWW-Authenticate", format!("Bearer {pointer}"));
        }
        if self.has(Attack::EndlessScopes) {
            self.issued += 1;
            self.demands_scope = Some(format!("scope-{}", self.issued));
        }
        match &self.demands_scope {
            Some(scope) if !self.was_asked(scope) || self.has(Attack::EndlessScopes) => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", {pointer}");
                Reply::empty(403).with("WWW-Authenticate", challenge)
            }
            _ => Reply::json(200, &json!({})),
        }
    }

    /// Returns `true` if the last sign-in asked for a scope.
    fn was_asked(&self, scope: &str) -> bool {
        let last = self.seen.iter().rev().find(|seen| seen.path == "/authorize");
        last.and_then(|seen| seen.query.get("scope"))
            .is_some_and(|all| all.split(' ').any(|one| one == scope))
    }
}

/// The thumbprint of the key of a proof (RFC 7638), which is on P-256.
fn thumbprint(proof: &str) -> Option<String> {
    let header = URL_SAFE_NO_PAD.decode(proof.split('.').next()?).ok()?;
    let header: Value = serde_json::from_slice(&header).ok()?;
    let member = |name: &str| header["jwk"][name].as_str();
    let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, member("x")?, member("y")?);
    Some(URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes())))
}

/// An attack, or a fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attack {
    /// The metadata of the resource is about another resource.
    OtherResource,
    /// The metadata of the authorization server is of another issuer.
    IssuerOfMetadata,
    /// The answer to a sign-in is of another issuer.
    IssuerOfAnswer,
    /// The answer does not name its issuer, although the metadata says that it does.
    NoIssuerInAnswer,
    /// The answer has the state of another sign-in.
    OtherState,
    /// The answer is an error with a text for terminals, of another issuer.
    ForgedError,
    /// The answer is an error with a text for terminals.
    TerminalText,
    /// The metadata does not mention PKCE.
    NoPkce,
    /// The metadata supports PKCE without a hash only.
    PlainPkce,
    /// The authorization endpoint is a script.
    ScriptEndpoint,
    /// The token endpoint is the metadata service of a cloud.
    CloudEndpoint,
    /// The token endpoint is not secure.
    InsecureEndpoint,
    /// The token endpoint redirects to another server.
    RedirectedToken,
    /// A gateway answers for the token endpoint that it is down.
    BadGateway,
    /// The documents are longer than allowed.
    HugeDocument,
    /// The tokens cannot stand in a header.
    TokenWithNewline,
    /// The tokens are of an unknown type.
    UnknownTokenType,
    /// The tokens live for longer than a clock can count.
    EndlessToken,
    /// The resource server refuses every token.
    RefusesAll,
    /// The resource server asks for more scopes each time.
    EndlessScopes,
    /// The registration demands a method of authentication that nobody requested.
    OtherMethod,
    /// The issuer of the metadata and of the answer has a slash at its end, which the metadata of the resource has not.
    RootSlash,
    /// Requests with a `resource` are refused.
    RefusesResource,
    /// The code for another device is a text for terminals.
    TerminalCode,
    /// The page for the code is a script.
    ScriptPage,
}

/// The answer of a person at another device, to all sign-ins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceAnswer {
    /// None yet.
    #[default]
    Pending,
    /// None yet, and the program asks too often.
    SlowDown,
    /// The person agrees.
    Agrees,
    /// The person refuses.
    Refuses,
    /// The code has expired.
    Expired,
}
