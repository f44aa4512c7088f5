//! Asking a live server the three questions, once, with every check.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use crate::Error;
use crate::case::Case;
use crate::connection::Connection;

/// Keeps header fields and body of each answer as `NAME.head` and `NAME.body`.
pub(crate) async fn record(addr: SocketAddr, out: &Path) -> Result<(), Error> {
    fs::create_dir_all(out)?;
    let mut connection = Connection::open(addr).await?;
    let mut state = String::new();
    for case in Case::ALL {
        let answer = ask(&mut connection, addr, case, &state).await?;
        fs::write(out.join(format!("{}.head", case.name())), &answer.head)?;
        fs::write(out.join(format!("{}.body", case.name())), &answer.body)?;
        println!("{}: {} bytes", case.name(), answer.body.len());
        if case == Case::Asks {
            state = answer.state()?;
        }
    }
    Ok(())
}

/// A state that this server sealed, for its own second leg.
pub(crate) async fn state(addr: SocketAddr) -> Result<String, Error> {
    let mut connection = Connection::open(addr).await?;
    ask(&mut connection, addr, Case::Asks, "").await?.state()
}

struct Checked {
    head: Vec<u8>,
    body: Vec<u8>,
    json: Value,
}

impl Checked {
    fn state(&self) -> Result<String, Error> {
        let state = self.json["result"]["requestState"].as_str();
        Ok(state.ok_or("the first leg brought no requestState")?.to_owned())
    }
}

async fn ask(
    connection: &mut Connection,
    addr: SocketAddr,
    case: Case,
    state: &str,
) -> Result<Checked, Error> {
    let answer = connection.exchange(&case.request(addr, state)).await?;
    let (head, body) = (answer.head.to_vec(), answer.body.to_vec());
    let json: Value = serde_json::from_slice(&body)?;
    if answer.status != 200 || !case.accepts(&json) {
        let text = String::from_utf8_lossy(&body);
        return Err(format!("{addr}, {}: {} {text}", case.name(), answer.status).into());
    }
    Ok(Checked { head, body, json })
}
