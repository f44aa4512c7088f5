//! A minimal browser.

use crate::Result;
use http_body_util::Empty;
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Submits the form of a page, as a browser in which this user of the demo is signed in. Returns the status of the
/// response.
///
/// # Errors
/// If the page cannot be reached.
pub async fn submit_form(url: &str, user: &str) -> Result<StatusCode> {
    let (host, path) =
        url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).ok_or("no such URL")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(TcpStream::connect(host).await?)).await?;
    tokio::spawn(connection);
    let request = Request::post(format!("/{path}"))
        .header(header::HOST, host)
        .header(header::COOKIE, format!("user={user}"))
        .body(Empty::<Bytes>::new())?;
    Ok(sender.send_request(request).await?.status())
}
