//! Each request once, with every check.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use crate::case::Case;
use crate::connection::{Connection, without_chunks};
use crate::error::Error;

/// Stores header fields and body of each answer as `NAME.head` and `NAME.body`, for the bare server.
pub(crate) async fn record(addr: SocketAddr, out: &Path, cases: &[Case]) -> Result<(), Error> {
    fs::create_dir_all(out)?;
    for case in cases {
        let answer = check(addr, *case).await?;
        let name = case.recorded_as();
        fs::write(out.join(format!("{name}.head")), &answer.head)?;
        fs::write(out.join(format!("{name}.body")), &answer.body)?;
        eprintln!("{}: {} bytes", case.name(), answer.body.len());
    }
    Ok(())
}

/// The state that this server seals for the second leg of a call; an empty text for other requests.
pub(crate) async fn state(addr: SocketAddr, case: Case) -> Result<String, Error> {
    let Some(first) = case.first_leg() else {
        return Ok(String::new());
    };
    let mut connection = Connection::open(addr).await?;
    let answer = ask(&mut connection, addr, first, "").await?;
    let state = answer.messages.last().and_then(|message| message["result"]["requestState"].as_str());
    Ok(state.ok_or("the first leg brought no requestState")?.to_owned())
}

/// One request and its answer, checked as JSON.
pub(crate) async fn check(addr: SocketAddr, case: Case) -> Result<CheckedResponse, Error> {
    let state = state(addr, case).await?;
    let mut connection = Connection::open(addr).await?;
    ask(&mut connection, addr, case, &state).await
}

/// A right answer.
pub(crate) struct CheckedResponse {
    head: Vec<u8>,
    body: Vec<u8>,
    messages: Vec<Value>,
}

async fn ask(
    connection: &mut Connection,
    addr: SocketAddr,
    case: Case,
    state: &str,
) -> Result<CheckedResponse, Error> {
    let answer = connection.exchange(&case.request(addr, state)).await?;
    let (status, head) = (answer.status, answer.head.to_vec());
    let body = if answer.is_chunked { without_chunks(answer.body) } else { answer.body.to_vec() };
    let messages = messages(&body);
    match messages {
        Ok(messages) if status == 200 && case.accepts(&messages) => {
            Ok(CheckedResponse { head, body, messages })
        }
        _ => {
            let text: String = String::from_utf8_lossy(&body).chars().take(2000).collect();
            Err(format!("{addr}, {}: {status} {text}", case.name()).into())
        }
    }
}

/// The JSON-RPC messages of a body: one, or those of an event stream.
fn messages(body: &[u8]) -> Result<Vec<Value>, Error> {
    if body.starts_with(b"{") {
        return Ok(vec![serde_json::from_slice(body)?]);
    }
    let lines = std::str::from_utf8(body)?.lines();
    let data = lines.filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
    data.map(|data| Ok(serde_json::from_str(data)?)).collect()
}
