//! An authorization server for tests, with a resource server beside it. Each attack is a switch.
//!
//! ```
//! use antiphon_oauth::{OAuth, testing::{Attack, TestAuthority}};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let authority = TestAuthority::start().await?;
//! let oauth = OAuth::builder("my-host").handler(authority.person()).build()?;
//! oauth.session(&authority.resource())?.login().await?;
//!
//! authority.attack([Attack::IssuerOfAnswer]);
//! assert!(oauth.session(&authority.resource())?.login().await.is_err());
//! # Ok(())
//! # }
//! ```

mod http;

pub use http::Seen;

use crate::handler::{ByHand, Consent};
use http::Reply;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use url::Url;

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
}

/// A running authorization server, with a resource server at [`resource`](Self::resource).
pub struct TestAuthority {
    base: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    attacks: HashSet<Attack>,
    seen: Vec<Seen>,
    /// The number of codes, tokens and clients that were issued.
    issued: usize,
    challenge: Option<String>,
    /// The access tokens that are valid, with their scopes.
    valid: HashMap<String, String>,
    /// The scopes of the last sign-in.
    granted: String,
    refresh: HashSet<String>,
    spent: HashSet<String>,
    expires_in: Option<u64>,
    demands_scope: Option<String>,
    supports_documents: bool,
    forgot_clients: bool,
}

impl TestAuthority {
    /// Starts a server on this machine. It ends when it is dropped.
    ///
    /// # Errors
    /// If no port can be used.
    pub async fn start() -> io::Result<Self> {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let (base, task) = http::serve(move |base, seen| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.seen.push(seen.clone());
            state.answer(base, &seen)
        })
        .await?;
        Ok(Self { base, state, task })
    }

    /// The issuer, without a slash at its end.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.base
    }

    /// The URL of a resource that needs a token of this server.
    #[must_use]
    pub fn resource(&self) -> String {
        format!("{}/mcp", self.base)
    }

    /// Sets the attacks, in place of earlier ones.
    pub fn attack(&self, attacks: impl IntoIterator<Item = Attack>) {
        self.lock().attacks = attacks.into_iter().collect();
    }

    /// Lets tokens live for so many seconds, and issues refresh tokens, each of which may be spent once.
    pub fn expire(&self, seconds: u64) {
        self.lock().expires_in = Some(seconds);
    }

    /// Demands a scope of the resource: a token without it gets 403.
    pub fn demand_scope(&self, scope: &str) {
        self.lock().demands_scope = Some(scope.to_owned());
    }

    /// Supports client metadata documents.
    pub fn support_documents(&self) {
        self.lock().supports_documents = true;
    }

    /// Forgets all clients: token requests get `invalid_client` until the next registration.
    pub fn forget_clients(&self) {
        self.lock().forgot_clients = true;
    }

    /// Makes all access tokens invalid.
    pub fn revoke_all(&self) {
        self.lock().valid.clear();
    }

    /// Returns the scopes of a valid access token, for a resource server of its own; `None` if the token is not valid.
    #[must_use]
    pub fn scopes_of(&self, token: &str) -> Option<String> {
        self.lock().valid.get(token).cloned()
    }

    /// The requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// The number of requests so far with this path.
    #[must_use]
    pub fn count(&self, path: &str) -> usize {
        self.lock().seen.iter().filter(|seen| seen.path == path).count()
    }

    /// The forms of the token requests so far, by their grant type.
    #[must_use]
    pub fn grants(&self) -> Vec<String> {
        let tokens = self.seen().into_iter().filter(|seen| seen.path == "/token");
        tokens.map(|seen| seen.form().remove("grant_type").unwrap_or_default()).collect()
    }

    /// A person who agrees to everything at once.
    #[must_use]
    pub fn person(&self) -> ByHand {
        ByHand::new("http://127.0.0.1/callback", async |consent: Consent| redirected(&consent.url).await)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gets a URL, and returns the address to which it redirects.
async fn redirected(url: &str) -> io::Result<String> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "no redirect");
    let url = Url::parse(url).map_err(|_| invalid())?;
    let authority = format!("{}:{}", url.host_str().unwrap_or_default(), url.port().unwrap_or(80));
    let mut connection = TcpStream::connect(&authority).await?;
    let target = &url[url::Position::BeforePath..];
    connection.write_all(format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
    location.map(str::to_owned).ok_or_else(invalid)
}

impl State {
    fn has(&self, attack: Attack) -> bool {
        self.attacks.contains(&attack)
    }

    fn answer(&mut self, base: &str, seen: &Seen) -> Reply {
        match &*seen.path {
            "/.well-known/oauth-protected-resource/mcp" => self.resource_metadata(base),
            "/.well-known/oauth-authorization-server" => Reply::json(200, &self.metadata(base)),
            "/register" => self.register(seen),
            "/authorize" => self.authorize(base, seen),
            "/token" => self.token(base, seen),
            "/revoke" => {
                let token = seen.form().remove("token").unwrap_or_default();
                self.refresh.remove(&token);
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
        if self.has(Attack::HugeDocument) {
            document["padding"] = "x".repeat(300 * 1024).into();
        }
        Reply::json(200, &document)
    }

    fn metadata(&self, base: &str) -> Value {
        let mut document = json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize?fixed=1"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "revocation_endpoint": format!("{base}/revoke"),
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": self.supports_documents,
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        });
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
        document["client_id"] = format!("client-{}", self.issued).into();
        if self.has(Attack::OtherMethod) {
            document["token_endpoint_auth_method"] = "tls_client_auth".into();
        }
        Reply::json(201, &document)
    }

    fn authorize(&mut self, base: &str, seen: &Seen) -> Reply {
        self.issued += 1;
        self.challenge = seen.query.get("code_challenge").cloned();
        self.granted = seen.query.get("scope").cloned().unwrap_or_default();
        let get = |name: &str| seen.query.get(name).cloned().unwrap_or_default();
        let mut pairs = vec![("code", format!("code-{}", self.issued)), ("state", get("state"))];
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
            pairs.push(("iss", base.to_owned()));
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
        if self.forgot_clients {
            return refused("invalid_client");
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
            "authorization_code" if self.challenge.take().is_none() => return refused("invalid_grant"),
            _ => {}
        }
        self.issue(get("scope"))
    }

    fn issue(&mut self, scope: &str) -> Reply {
        self.issued += 1;
        let token = format!("token-{}", self.issued);
        let scopes = if scope.is_empty() { self.granted.clone() } else { scope.to_owned() };
        self.valid.insert(token.clone(), scopes);
        let mut answer = json!({"access_token": token, "token_type": "Bearer"});
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
        let token = seen.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
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

impl Drop for TestAuthority {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for TestAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestAuthority").field("base", &self.base).finish_non_exhaustive()
    }
}
