//! A transport, a clock and clients for the tests.

use antiphon_oauth::{Error, OAuth, OAuthBuilder, Session, testing::TestAuthority};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A clock that a test moves.
#[derive(Clone)]
pub(crate) struct Clock(Arc<Mutex<SystemTime>>);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(SystemTime::now())))
    }

    pub(crate) fn advance(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }

    pub(crate) fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }
}

/// A folder that is removed with its files.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("antiphon-oauth-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name).join("tokens"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap());
    }
}

/// A client whose person agrees to everything.
pub(crate) fn client(authority: &TestAuthority) -> OAuthBuilder {
    OAuth::builder("test").handler(authority.person())
}

pub(crate) fn session(client: OAuthBuilder, authority: &TestAuthority) -> Arc<Session> {
    client.build().unwrap().session(&authority.resource()).unwrap()
}

/// Gets the resource as a transport does.
pub(crate) async fn get(session: &Arc<Session>, authority: &TestAuthority) -> Result<StatusCode, Error> {
    let (url, mut attempt) = (authority.resource(), session.attempt());
    loop {
        let sent = attempt.headers("GET", &url).await?;
        let (status, headers) = send(&url, &sent).await;
        if !attempt.is_challenged(status, &headers, || "GET".to_owned()) {
            return Ok(status);
        }
        attempt.renew().await?;
    }
}

async fn send(url: &str, headers: &HeaderMap) -> (StatusCode, HeaderMap) {
    let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut text = format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    let mut connection = TcpStream::connect(authority).await.unwrap();
    connection.write_all(format!("{text}\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let mut lines = answer.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let fields = lines.map_while(|line| line.split_once(": "));
    let parse = |(name, value): (&str, &str)| {
        (HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap())
    };
    (status, fields.map(parse).collect())
}
