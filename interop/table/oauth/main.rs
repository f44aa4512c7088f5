//! antiphon's OAuth client and resource server, with an authorization server of somebody else.
//!
//! `antiphon-interop-oauth ISSUER DRIVER` prints one line per case and `N passed, N failed` at the end. A GET of `DRIVER?url=URL` opens
//! a page of the issuer as a person does who agrees, and returns the address to which the browser leaves it.
//!
//! `antiphon-interop-oauth ISSUER` prints `listening on URL`, and is the resource server for clients of somebody else.
#![allow(clippy::print_stdout, reason = "the program prints its results")]

use antiphon::{
    client::{
        Client, Mode,
        oauth::{ByHand, Consent, Credentials, Grant, OAuth, OAuthBuilder, Session, SignedOut},
        transport::HttpTransport,
    },
    serve::http::{
        HttpOptions,
        auth::{Dpop, Issuer, ResourceServer},
        serve_http,
    },
    server::{Ctx, NoArguments, Server, Tool},
};
use serde_json::json;
use std::{
    env,
    error::Error,
    future::Future,
    io,
    pin::Pin,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

type AnyError = Box<dyn Error + Send + Sync>;
type Outcome = Result<(), AnyError>;
type Case = for<'a> fn(&'a Peer) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// Limit of one case.
const CASE_TIMEOUT: Duration = Duration::from_secs(60);

const CASES: [(&str, Case); 7] = [
    ("code: registration, PKCE, resource, issuer", |peer| Box::pin(code(peer))),
    ("refresh tokens rotate", |peer| Box::pin(refresh(peer))),
    ("step up", |peer| Box::pin(step_up(peer))),
    ("revocation", |peer| Box::pin(revocation(peer))),
    ("DPoP with nonces of both servers", |peer| Box::pin(dpop(peer))),
    ("client credentials", |peer| Box::pin(machine(peer))),
    ("device flow", |peer| Box::pin(device(peer))),
];

/// The authorization server, and the person who signs in there.
struct Peer {
    issuer: String,
    driver: String,
}

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let words: Vec<String> = env::args().skip(1).collect();
    let peer = match &words[..] {
        [issuer] => {
            let peer = Peer { issuer: issuer.clone(), driver: String::new() };
            println!("listening on {}", peer.serve(Dpop::optional()).await?);
            return std::future::pending().await;
        }
        [issuer, driver] => Peer { issuer: issuer.clone(), driver: driver.clone() },
        _ => return Err("usage: antiphon-interop-oauth ISSUER [DRIVER]".into()),
    };
    let (mut passed, mut failed) = (0, 0);
    for (name, run) in CASES {
        let outcome =
            timeout(CASE_TIMEOUT, run(&peer)).await.unwrap_or_else(|_| Err("it takes too long".into()));
        match outcome {
            Ok(()) => passed += 1,
            Err(fault) => {
                failed += 1;
                let mut text = fault.to_string();
                let mut cause = fault.source();
                while let Some(one) = cause {
                    text += &format!(": {one}");
                    cause = one.source();
                }
                println!("FAILED {name}: {text}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Peer {
    /// Starts a resource server that trusts the issuer. Returns its URL.
    async fn serve(&self, dpop: Dpop) -> Result<String, AnyError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let auth = ResourceServer::builder(&url)
            .issuer(Issuer::new(&self.issuer))
            .scopes_supported(["mcp"])
            .required_scopes(["mcp"])
            .dpop(dpop)
            .build()?;
        let tool = |name: &'static str| {
            Tool::new(name, async |ctx: &Ctx, _: NoArguments| {
                ctx.principal().and_then(|who| who.subject()).unwrap_or("a machine").to_owned()
            })
        };
        let server = Server::builder("interop", "1.0")
            .tool(tool("read"))
            .tool(tool("write").scopes(["write"]))
            .allow_client_principal(true)
            .build()?;
        tokio::spawn(serve_http(listener, server, HttpOptions::default().authorize(auth)).into_future());
        Ok(url)
    }

    /// A client whose person agrees, and the number of times that this person was asked.
    fn client(&self) -> (OAuthBuilder, Arc<AtomicUsize>) {
        let (driver, count) = (self.driver.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&count);
        let handler = ByHand::new("http://127.0.0.1:9/callback", move |consent: Consent| {
            counted.fetch_add(1, Ordering::Relaxed);
            let driver = driver.clone();
            async move { visit(&driver, &consent.url).await }
        });
        (OAuth::builder("antiphon interop").handler(handler), count)
    }
}

/// Opens a page as the person does.
async fn visit(driver: &str, url: &str) -> io::Result<String> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the driver does not answer");
    let authority = driver.strip_prefix("http://").ok_or_else(invalid)?;
    let escaped: String = url.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let mut connection = TcpStream::connect(authority).await?;
    let request = format!("GET /?url={escaped} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(invalid)?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(body.to_owned()));
    }
    // A body without a length is sent in one chunk.
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { body.lines().nth(1).unwrap_or_default() } else { body };
    Ok(body.to_owned())
}

/// Calls a tool, in the modern era or in a session. Returns its text.
async fn call(oauth: &OAuth, url: &str, tool: &'static str) -> Result<String, AnyError> {
    let transport = HttpTransport::builder(url).oauth(oauth).build()?;
    let client = Client::builder("interop", "1.0").connect(transport);
    let result = client.call_tool(tool, json!({})).await;
    client.close().await;
    Ok(result?.first_text().unwrap_or_default().to_owned())
}

async fn signed_in(session: &Session) -> Result<antiphon::client::oauth::SignedIn, AnyError> {
    Ok(session.signed_in().await?.ok_or("there is no sign-in")?)
}

/// An error with this text unless it is so.
fn check(is_so: bool, otherwise: &str) -> Outcome {
    if is_so { Ok(()) } else { Err(otherwise.into()) }
}

async fn code(peer: &Peer) -> Outcome {
    let url = peer.serve(Dpop::optional()).await?;
    let (builder, asked) = peer.client();
    let oauth = builder.build()?;
    for _ in 0..2 {
        check(call(&oauth, &url, "read").await? == "ada", "the caller is another one")?;
    }
    check(asked.load(Ordering::Relaxed) == 1, "the person was asked again")?;
    let known = signed_in(&*oauth.session(&url)?).await?;
    check(known.issuer == peer.issuer && known.renews, "there is no refresh token")?;
    check(known.scopes.iter().any(|scope| scope == "mcp"), "the scope was not granted")
}

async fn refresh(peer: &Peer) -> Outcome {
    // Nonces, because the clock of this client is wrong.
    let url = peer.serve(Dpop::optional().nonces([7; 32])).await?;
    let (builder, asked) = peer.client();
    let late = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&late);
    // The token is old for this client only.
    let oauth = builder
        .clock(move || SystemTime::now() + Duration::from_secs(now.load(Ordering::Relaxed)))
        .build()?;
    let session = oauth.session(&url)?;
    let mut tokens = Vec::new();
    for _ in 0..3 {
        call(&oauth, &url, "read").await?;
        tokens.push(session.token().await?.ok_or("there is no token")?);
        late.fetch_add(3600, Ordering::Relaxed);
    }
    check(asked.load(Ordering::Relaxed) == 1, "the person was asked again")?;
    check(tokens[0] != tokens[1] && tokens[1] != tokens[2], "the token is the same")
}

async fn step_up(peer: &Peer) -> Outcome {
    let url = peer.serve(Dpop::optional()).await?;
    let (builder, asked) = peer.client();
    let oauth = builder.build()?;
    call(&oauth, &url, "read").await?;
    call(&oauth, &url, "write").await?;
    call(&oauth, &url, "read").await?;
    check(asked.load(Ordering::Relaxed) == 2, "the person was not asked twice")?;
    let known = signed_in(&*oauth.session(&url)?).await?;
    check(["mcp", "write"].iter().all(|scope| known.scopes.iter().any(|one| one == scope)), "a scope is lost")
}

async fn revocation(peer: &Peer) -> Outcome {
    let url = peer.serve(Dpop::optional()).await?;
    let (builder, asked) = peer.client();
    let oauth = builder.build()?;
    call(&oauth, &url, "read").await?;
    let session = oauth.session(&url)?;
    check(session.logout().await? == SignedOut::Revoked, "the tokens are not revoked")?;
    call(&oauth, &url, "read").await?;
    check(asked.load(Ordering::Relaxed) == 2, "the person was not asked again")
}

async fn dpop(peer: &Peer) -> Outcome {
    for mode in [Mode::Auto, Mode::Legacy] {
        let url = peer.serve(Dpop::required().nonces([7; 32])).await?;
        let (builder, asked) = peer.client();
        let oauth = builder.build()?;
        let transport = HttpTransport::builder(&url).oauth(&oauth).build()?;
        let client = Client::builder("interop", "1.0").mode(mode.clone()).connect(transport);
        for _ in 0..2 {
            client.call_tool("read", json!({})).await?;
        }
        client.close().await;
        check(asked.load(Ordering::Relaxed) == 1, "the person was asked again")?;
        let session = oauth.session(&url)?;
        check(signed_in(&session).await?.bound, "the token is not bound")?;
        let token = session.token().await?.ok_or("there is no token")?;
        let thief = HttpTransport::builder(&url).bearer(token.expose()).build()?;
        let thief = Client::builder("thief", "1.0").mode(mode).connect(thief);
        let fault = thief.call_tool("read", json!({})).await.err().ok_or("a stolen token is accepted")?;
        check(fault.http_status() == Some(401), "a stolen token has another answer")?;
        check(session.logout().await? == SignedOut::Revoked, "the tokens are not revoked")?;
    }
    Ok(())
}

async fn machine(peer: &Peer) -> Outcome {
    let url = peer.serve(Dpop::optional()).await?;
    let credentials = Credentials::secret("machine", "machine-secret").for_issuer(&peer.issuer);
    let oauth = OAuth::builder("machine").credentials(credentials).grant(Grant::ClientCredentials).build()?;
    check(call(&oauth, &url, "read").await? == "a machine", "the caller is another one")?;
    let session = oauth.session(&url)?;
    check(signed_in(&session).await?.client_id.as_deref() == Some("machine"), "the client is another one")?;
    // The peer revokes no JWT.
    check(session.logout().await? == SignedOut::Removed, "the token is revoked")
}

async fn device(peer: &Peer) -> Outcome {
    let url = peer.serve(Dpop::optional()).await?;
    let oauth = OAuth::builder("antiphon interop").scopes(["mcp"]).build()?;
    let session = oauth.session(&url)?;
    let mut begun = session.begin_device(None).await?;
    check(!session.poll_device(&mut begun).await?, "nobody has agreed")?;
    let page = begun.verification_uri_complete().ok_or("there is no page with the code")?;
    visit(&peer.driver, page).await?;
    session.finish_device(begun).await?;
    check(call(&oauth, &url, "read").await? == "ada", "the caller is another one")
}
