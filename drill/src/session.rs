//! A person whose client is of 2025: the call is made in a session with one server, which ends with its process.

use crate::{
    error::Result,
    fleet::Fleet,
    history::{History, Outcome, person_of},
    leg::Leg,
    level::Level,
    plan::plan,
    random::Random,
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Response,
    body::{Bytes, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpStream;

/// The time after which a person gives a session up.
const LIMIT: Duration = Duration::from_secs(30);

/// A session with one process.
struct Session {
    address: SocketAddr,
    person: String,
    /// The id, when it is open.
    id: String,
}

/// The messages of a reply, as a JSON body or as an event stream.
struct Messages {
    response: Response<Incoming>,
    buffer: Vec<u8>,
}

/// Makes the call of this number in a session. In some of a hundred cases its request is sent again: then or later, with its id.
pub(crate) async fn call(fleet: &Fleet, history: &Arc<History>, seed: u64, number: u64) {
    let mut random = Random::new(seed, "session", number);
    let level = Level::ALL[usize::try_from(random.below(3)).unwrap_or_default()];
    let (call, plan) = (format!("old{number}"), plan(&mut random).replace('n', "sq"));
    let place = usize::try_from(random.below(u64::try_from(fleet.size()).unwrap_or(1))).unwrap_or_default();
    let Some((address, process)) = fleet.address(place) else { return };
    history.begin(&call, level, &plan);
    history.with(&call, |record| {
        record.in_session = true;
        record.processes.insert(process);
    });
    let leg =
        Leg { person: person_of(&call), call, level, plan, number: 0, state: None, answers: Value::Null };
    let made = tokio::time::timeout(LIMIT, made(address, history, &leg, &mut random)).await;
    let outcome = match made {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) | Err(_) => Outcome::SessionLost,
    };
    history.ended(&leg, outcome);
}

async fn made(
    address: SocketAddr,
    history: &Arc<History>,
    leg: &Leg,
    random: &mut Random,
) -> Result<Outcome> {
    let session = Arc::new(Session::open(address, leg.person.clone()).await?);
    let arguments = json!({ "call": leg.call, "plan": leg.plan });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": leg.level.tool(), "arguments": arguments } });
    if random.percent(40) {
        let (session, request) = (Arc::clone(&session), request.clone());
        let delay = random.millis(1500);
        // It waits for no reply: the first one counts.
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = tokio::time::timeout(LIMIT, session.post(&request)).await;
        });
    }
    let mut messages = session.post(&request).await?;
    loop {
        let message = messages.next().await?;
        if message["method"] == "elicitation/create" {
            let text = message["params"]["message"].as_str().unwrap_or_default();
            let key = text.split(' ').nth(1).unwrap_or_default();
            let answer = leg.answer("old", key);
            let name = answer["content"]["name"].as_str().unwrap_or_default().to_owned();
            history.with(&leg.call, |record| record.accepted.insert(key.to_owned(), name));
            session.post(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer })).await?;
        } else if message["id"] == 1 {
            let text = message["result"]["content"][0]["text"].as_str();
            return Ok(match text {
                Some(text) if message["result"]["isError"] != true => Outcome::Result(text.to_owned()),
                text => {
                    Outcome::SessionError(text.map_or_else(|| message["error"].to_string(), str::to_owned))
                }
            });
        }
    }
}

impl Session {
    async fn open(address: SocketAddr, person: String) -> Result<Self> {
        let mut session = Self { address, person, id: String::new() };
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "old", "version": "1" } });
        let mut opened = session
            .post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
            .await?;
        let id = opened.response.headers().get("mcp-session-id").ok_or("no session")?.to_str()?.to_owned();
        opened.next().await?;
        session.id = id;
        session.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(session)
    }

    /// Sends a message over a connection of its own.
    async fn post(&self, message: &Value) -> Result<Messages> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(TcpStream::connect(self.address).await?)).await?;
        tokio::spawn(connection);
        let mut request = hyper::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("x-person", &self.person);
        if !self.id.is_empty() {
            request = request.header("mcp-session-id", &self.id).header("mcp-protocol-version", "2025-11-25");
        }
        let response =
            sender.send_request(request.body(Full::new(Bytes::from(message.to_string())))?).await?;
        Ok(Messages { response, buffer: Vec::new() })
    }
}

impl Messages {
    /// Returns the next message.
    async fn next(&mut self) -> Result<Value> {
        loop {
            // A body that is one message has no line end before its end.
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if let Some(message) = read(&line) {
                    return Ok(message);
                }
                continue;
            }
            match self.response.body_mut().frame().await {
                Some(frame) => self.buffer.extend(frame?.into_data().unwrap_or_default()),
                None => return read(&std::mem::take(&mut self.buffer)).ok_or_else(|| "no reply".into()),
            }
        }
    }
}

/// Reads a line of an event stream, or a whole body.
fn read(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line.strip_prefix(b"data:").unwrap_or(line)).ok()
}
