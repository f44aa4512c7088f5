//! Authorization: the client signs in by itself. What a scenario gives is in its context, and nothing else is known before.

use crate::error::AnyError;
use antiphon::client::{
    Client, ClientError,
    oauth::{
        ByHand, Consent, Credentials, Error as AuthError, ErrorKind, Grant, IdentityProvider, OAuth,
        OAuthBuilder, SigningKey,
    },
    transport::HttpTransport,
};
use serde::Deserialize;
use serde_json::json;
use std::{env, error::Error as StdError};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The client id of the suite's client metadata document.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The context that the suite gives to some scenarios.
#[derive(Deserialize)]
struct Context {
    client_id: String,
    client_secret: Option<String>,
    issuer: Option<String>,
    private_key_pem: Option<String>,
    signing_algorithm: Option<String>,
    idp_client_id: Option<String>,
    idp_id_token: Option<String>,
    idp_issuer: Option<String>,
    idp_token_endpoint: Option<String>,
    valid_jwt: Option<String>,
}

/// Connects, lists the tools and calls one.
pub(crate) async fn run(scenario: &str, client: Client) -> Result<(), AnyError> {
    let done = use_server(&client).await;
    client.close().await;
    let is_expected = match scenario {
        // The client stops here, for this reason.
        "auth/resource-mismatch" => refused_because(&done, ErrorKind::Discovery),
        "auth/metadata-issuer-mismatch"
        | "auth/iss-supported-missing"
        | "auth/iss-wrong-issuer"
        | "auth/iss-unexpected"
        | "auth/iss-normalized" => refused_because(&done, ErrorKind::Issuer),
        // The server refuses for ever.
        "auth/scope-retry-limit" => done.as_ref().is_err_and(|fault| fault.http_status() == Some(403)),
        _ => return Ok(done?),
    };
    if is_expected { Ok(()) } else { Err(format!("not what was expected: {done:?}").into()) }
}

async fn use_server(client: &Client) -> Result<(), ClientError> {
    let tools = client.list_tools().await?;
    for tool in tools.iter().take(1) {
        client.call_tool(tool.name.clone(), json!({})).await?;
    }
    Ok(())
}

/// Returns `true` if authorization failed with this kind of error.
fn refused_because(done: &Result<(), ClientError>, kind: ErrorKind) -> bool {
    let mut cause = done.as_ref().err().map(|fault| fault as &(dyn StdError + 'static));
    while let Some(one) = cause {
        if let Some(found) = one.downcast_ref::<AuthError>() {
            return found.kind() == kind;
        }
        cause = one.source();
    }
    false
}

/// A transport that signs in.
pub(crate) fn transport(scenario: &str, url: &str) -> Result<HttpTransport, AnyError> {
    let oauth = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => with_context(scenario, serde_json::from_str(&text)?)?,
        Err(_) => builder().metadata_document(DOCUMENT),
    };
    Ok(HttpTransport::builder(url).oauth(&oauth.build()?).build()?)
}

fn builder() -> OAuthBuilder {
    OAuth::builder("antiphon-conformance").handler(ByHand::new("http://127.0.0.1:3000/callback", consent))
}

/// The program as the scenario's context describes it.
fn with_context(scenario: &str, context: Context) -> Result<OAuthBuilder, AnyError> {
    let mut credentials = match (context.client_secret, context.private_key_pem) {
        (Some(secret), _) => Credentials::secret(context.client_id, secret),
        (None, Some(pem)) => {
            let algorithm = context.signing_algorithm.ok_or("no signing_algorithm")?;
            Credentials::key(context.client_id, SigningKey::from_pem(&algorithm, &pem)?)
        }
        (None, None) => Credentials::public(context.client_id),
    };
    if let Some(issuer) = context.issuer {
        credentials = credentials.for_issuer(issuer);
    }
    let grant = if let Some(jwt) = context.valid_jwt {
        Grant::assertion(move || std::future::ready(Ok::<_, AnyError>(jwt.clone())))
    } else if let Some(token) = context.idp_id_token {
        let client = Credentials::public(context.idp_client_id.ok_or("no idp_client_id")?);
        let issuer = context.idp_issuer.ok_or("no idp_issuer")?;
        let endpoint = context.idp_token_endpoint.ok_or("no idp_token_endpoint")?;
        let token = move || std::future::ready(Ok::<_, AnyError>(token.clone()));
        Grant::Enterprise(IdentityProvider::new(issuer, endpoint, client, token))
    } else if scenario == "auth/pre-registration" {
        Grant::Code
    } else {
        Grant::ClientCredentials
    };
    Ok(builder().credentials(credentials).grant(grant))
}

/// The suite's authorization server asks nobody: it answers with the redirect at once, as a browser would see it.
async fn consent(consent: Consent) -> Result<String, AnyError> {
    let rest = consent.url.strip_prefix("http://").ok_or("not a server of the suite")?;
    let (authority, path) = rest.split_once('/').ok_or("the URL has no path")?;
    let mut connection = TcpStream::connect(authority).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    location.ok_or_else(|| "the authorization server did not redirect".into())
}
