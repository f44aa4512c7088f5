//! A server for tests: HTTP/1.1 on loopback, one request for each connection.

use std::{collections::HashMap, io, net::Ipv4Addr, sync::Arc};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use url::form_urlencoded;

/// A request that a test server received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The parameters of the query.
    pub query: HashMap<String, String>,
    /// The fields, with names in lower case.
    pub headers: HashMap<String, String>,
    /// The body as text.
    pub body: String,
}

impl Seen {
    /// The parameters of a form in the body.
    #[must_use]
    pub fn form(&self) -> HashMap<String, String> {
        form_urlencoded::parse(self.body.as_bytes()).into_owned().collect()
    }
}

/// An answer of a test server.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, headers: vec![("Content-Type", "application/json".into())], body: body.to_string() }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Serves requests until it is dropped. `answer` gets each request.
pub(crate) async fn serve(
    answer: impl Fn(&str, Seen) -> Reply + Send + Sync + 'static,
) -> io::Result<(String, JoinHandle<()>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let (answer, origin) = (Arc::new(answer), base.clone());
    let task = tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (answer, origin) = (Arc::clone(&answer), origin.clone());
            tokio::spawn(async move { drop(serve_one(connection, &origin, &*answer).await) });
        }
    });
    Ok((base, task))
}

async fn serve_one(
    mut connection: TcpStream,
    origin: &str,
    answer: &(dyn Fn(&str, Seen) -> Reply + Send + Sync),
) -> io::Result<()> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        match connection.read(&mut chunk).await? {
            0 => return Ok(()),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while bytes.len() < head_end + 4 + length {
        match connection.read(&mut chunk).await? {
            0 => return Ok(()),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let seen = Seen {
        method: method.to_owned(),
        path: path.to_owned(),
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers,
        body: String::from_utf8_lossy(&bytes[head_end + 4..]).into_owned(),
    };
    let reply = answer(origin, seen);
    let mut text = format!(
        "HTTP/1.1 {} Status\r\nContent-Length: {}\r\nConnection: close\r\n",
        reply.status,
        reply.body.len()
    );
    for (name, value) in &reply.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("\r\n{}", reply.body);
    connection.write_all(text.as_bytes()).await?;
    connection.shutdown().await
}
