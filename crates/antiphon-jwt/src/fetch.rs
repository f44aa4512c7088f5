//! Requests to an issuer, over the same connections as the client's.

use antiphon_connect::Connector;
use antiphon_wire::check_secure;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde::Deserialize;
use std::time::Duration;
use url::Url;

/// The maximum length of a response in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// The maximum time to connect.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Returns the body at this URL as text. Redirects are not followed.
pub(crate) async fn get(url: &str) -> Result<String, String> {
    let parsed = Url::parse(url).map_err(|fault| format!("{url}: {fault}"))?;
    check_secure(parsed.scheme(), parsed.host_str()).map_err(|fault| format!("{url}: {fault}"))?;
    let uri: Uri = parsed.as_str().parse().map_err(|fault| format!("{url}: {fault}"))?;
    let connector = Connector::new(&uri, CONNECT_TIME)?;
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::get(uri)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("antiphon/", env!("CARGO_PKG_VERSION")))
        .body(Empty::new())
        .map_err(|fault| fault.to_string())?;
    let response = client.request(request).await.map_err(|fault| format!("{url}: {fault}"))?;
    if response.status() != StatusCode::OK {
        return Err(format!("{url}: {}", response.status()));
    }
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
    let body = body.map_err(|fault| format!("{url}: {fault}"))?.to_bytes();
    String::from_utf8(body.into()).map_err(|_| format!("{url}: not text"))
}

/// Returns the URL of the keys in the metadata of an issuer.
///
/// > clients **MUST** attempt multiple well-known endpoints when discovering authorization server metadata.
pub(crate) async fn discover(issuer: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let mut faults = Vec::new();
    for place in well_known(issuer) {
        let found = get(&place).await.and_then(|text| {
            serde_json::from_str::<Metadata>(&text).map_err(|fault| format!("{place}: {fault}"))
        });
        match found {
            // > the `issuer` value in the document **MUST** be identical to the issuer identifier used to construct the
            // > well-known URL. If they differ, the client **MUST NOT** use the metadata.
            Ok(found) if found.issuer != issuer => faults.push(format!("{place}: of another issuer")),
            Ok(found) => return Ok(found.jwks_uri),
            Err(fault) => faults.push(fault),
        }
    }
    Err(faults.join("; "))
}

/// Returns the possible URLs of the metadata of an issuer, in the order to be tried.
fn well_known(issuer: &str) -> Vec<String> {
    let issuer = issuer.trim_end_matches('/');
    let host_at = issuer.find("://").map_or(0, |at| at + 3);
    let (origin, path) = issuer.split_at(issuer[host_at..].find('/').map_or(issuer.len(), |at| host_at + at));
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{issuer}/.well-known/openid-configuration"));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_metadata_is() {
        let host = "https://auth.example.com";
        for (issuer, expected) in [
            ("", &["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"][..]),
            ("/", &["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
            (
                "/tenant1",
                &[
                    "/.well-known/oauth-authorization-server/tenant1",
                    "/.well-known/openid-configuration/tenant1",
                    "/tenant1/.well-known/openid-configuration",
                ],
            ),
        ] {
            let expected: Vec<String> = expected.iter().map(|path| format!("{host}{path}")).collect();
            assert_eq!(well_known(&format!("{host}{issuer}")), expected);
        }
    }
}
