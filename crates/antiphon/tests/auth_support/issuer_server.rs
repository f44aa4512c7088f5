//! An issuer's HTTP server on a real socket, with answers by path.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
};

#[derive(Clone)]
pub struct IssuerServer {
    pub address: SocketAddr,
    answers: Arc<Mutex<HashMap<String, (u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// A permit for each answer.
    open: Arc<Semaphore>,
    arrived: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>>,
}

impl IssuerServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (tell, arrived) = mpsc::unbounded_channel();
        let server = Self {
            address: listener.local_addr().unwrap(),
            answers: Arc::default(),
            asked: Arc::default(),
            open: Arc::new(Semaphore::new(1_000)),
            arrived: Arc::new(tokio::sync::Mutex::new(arrived)),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (serving, tell) = (serving.clone(), tell.clone());
                tokio::spawn(async move { serving.answer(stream, tell).await });
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the answer for a path.
    pub fn set(&self, path: &str, status: u16, body: impl ToString) {
        self.answers.lock().unwrap().insert(path.to_owned(), (status, body.to_string()));
    }

    /// The paths that were asked for, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Holds all answers back until [`release`](Self::release).
    pub fn hold(&self) {
        self.open.forget_permits(1_000);
    }

    pub fn release(&self) {
        self.open.add_permits(1_000);
    }

    /// Waits for a request that was not waited for before.
    pub async fn asked_again(&self) {
        self.arrived.lock().await.recv().await.unwrap();
    }

    async fn answer(&self, stream: TcpStream, tell: mpsc::UnboundedSender<()>) {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let path = head.split(' ').nth(1).unwrap().to_owned();
        self.asked.lock().unwrap().push(path.clone());
        let _ = tell.send(());
        let Ok(permit) = self.open.acquire().await else { return };
        drop(permit);
        let known = self.answers.lock().unwrap().get(&path).cloned();
        let (status, body) = known.unwrap_or((404, "nothing here".to_owned()));
        let reply = format!(
            "HTTP/1.1 {status} Said\r\ncontent-length: {}\r\nconnection: close\r\nlocation: /elsewhere\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.get_mut().write_all(reply.as_bytes()).await;
    }
}
