//! A codec whose key belongs to a key management service (KMS): the service is asked once in a while, and no request waits
//! for it. While it is down, calls go on with the known key; after a time without it nothing is sealed or opened, and
//! nothing is lost.
//!
//! The operator lets the KMS make one key, and gives every instance the *wrapped* key, which only the KMS can unwrap. An
//! instance unwraps it when it starts, and keeps it in memory. It asks again every minute, so the KMS can withdraw the
//! key: without a confirmation for ten minutes, the codec stops.
//!
//! Try it: `cargo run -p antiphon-examples --bin kms_codec`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use aes_gcm_siv::{
    Aes256GcmSiv, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use antiphon::{
    Clock, Result,
    client::{Call, Client, Finished, PendingCall},
    memory,
    seal::{Codec, CodecError, SecretKey},
    server::{Ctx, Server},
    tool,
    wire::AskSupport,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

/// The time for which an unwrapped key may be used without a new confirmation of the KMS.
const MAX_AGE: Duration = Duration::from_secs(600);
/// The time between two requests to the KMS.
const REFRESH: Duration = Duration::from_secs(60);
/// The text before the tokens of this codec. The cipher's tag covers it.
const PREFIX: &[u8] = b"kms1.";

/// A KMS that is slow, and sometimes down. The root key never leaves it.
struct Kms {
    root: Aes256GcmSiv,
    is_down: AtomicBool,
    requests: AtomicU32,
}

impl Kms {
    fn new() -> Result<Self> {
        let root = cipher(&SecretKey::random()?.to_base64url())?;
        Ok(Self { root, is_down: AtomicBool::new(false), requests: AtomicU32::new(0) })
    }

    /// Makes a key, and returns it wrapped: for the configuration of every instance.
    fn wrapped_key(&self) -> Result<Vec<u8>> {
        let key = SecretKey::random()?.to_base64url();
        self.root.encrypt(&Nonce::default(), key.as_bytes()).map_err(|_| "the KMS cannot wrap".into())
    }

    /// Returns the text of the key.
    async fn unwrap_key(&self, wrapped: &[u8]) -> Result<String, CodecError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(200)).await;
        if self.is_down.load(Ordering::SeqCst) {
            return Err(CodecError::new("503 from the KMS"));
        }
        let key = self.root.decrypt(&Nonce::default(), wrapped);
        let key = key.map_err(|_| CodecError::new("the KMS does not know this key"))?;
        String::from_utf8(key).map_err(CodecError::new)
    }
}

/// Returns a cipher under a key of 32 bytes, written as base64url.
fn cipher(text: &str) -> Result<Aes256GcmSiv, CodecError> {
    let bytes = decoded(text).ok_or_else(|| CodecError::new("not a key"))?;
    Aes256GcmSiv::new_from_slice(&bytes).map_err(|_| CodecError::new("not a key of 32 bytes"))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// The codec. Its clones share the key.
#[derive(Clone)]
struct EnvelopeCodec {
    wrapped: Arc<[u8]>,
    cached: Arc<RwLock<Option<Cached>>>,
    clock: Clock,
}

/// The unwrapped key, and the time of its last confirmation.
struct Cached {
    cipher: Aes256GcmSiv,
    confirmed: SystemTime,
}

impl EnvelopeCodec {
    fn new(wrapped: Vec<u8>, clock: Clock) -> Self {
        Self { wrapped: wrapped.into(), cached: Arc::default(), clock }
    }

    /// Asks the KMS for the key. The key that is known stays, if the KMS does not answer.
    async fn refresh(&self, kms: &Kms) -> Result<(), CodecError> {
        let cipher = cipher(&kms.unwrap_key(&self.wrapped).await?)?;
        let cached = Cached { cipher, confirmed: self.clock.now() };
        *self.cached.write().unwrap_or_else(PoisonError::into_inner) = Some(cached);
        Ok(())
    }

    /// Asks the KMS again and again, for as long as the server runs.
    async fn keep_fresh(self, kms: Arc<Kms>) {
        loop {
            tokio::time::sleep(REFRESH).await;
            if let Err(error) = self.refresh(&kms).await {
                println!("the KMS did not confirm the key: {error}");
            }
        }
    }

    /// Calls `act` with the cipher, unless its key is too old. It reads memory only: no request waits for the KMS.
    fn with<T>(&self, act: impl FnOnce(&Aes256GcmSiv) -> Result<T, CodecError>) -> Result<T, CodecError> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let age = |cached: &Cached| self.clock.now().duration_since(cached.confirmed).unwrap_or_default();
        match &*cached {
            Some(cached) if age(cached) <= MAX_AGE => act(&cached.cipher),
            // Decided before the token is read: the answer says nothing about the token.
            _ => Err(CodecError::unavailable("the KMS has not confirmed the key for ten minutes")),
        }
    }
}

impl Codec for EnvelopeCodec {
    fn seal(&self, plaintext: &[u8]) -> Result<String, CodecError> {
        self.with(|cipher| {
            // Random: the first 12 bytes of a new key.
            let random = SecretKey::random().map_err(CodecError::new)?.to_base64url();
            let nonce = decoded(&random).and_then(|bytes| bytes.first_chunk::<12>().copied());
            let nonce = nonce.ok_or_else(|| CodecError::new("no nonce"))?;
            let payload = Payload { msg: plaintext, aad: PREFIX };
            let sealed = cipher.encrypt(&Nonce::from(nonce), payload);
            let sealed = sealed.map_err(|_| CodecError::new("the state is too long"))?;
            Ok(format!("kms1.{}", URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())))
        })
    }

    fn open(&self, token: &str) -> Result<Vec<u8>, CodecError> {
        self.with(|cipher| {
            let rejected = || CodecError::new("not a token of this codec");
            let body = token.strip_prefix("kms1.").and_then(decoded).ok_or_else(rejected)?;
            let (nonce, sealed) = body.split_first_chunk::<12>().ok_or_else(rejected)?;
            let payload = Payload { msg: sealed, aad: PREFIX };
            cipher.decrypt(&Nonce::from(*nonce), payload).map_err(|_| rejected())
        })
    }
}

/// Orders a database.
#[tool(answer_timeout = "1d")]
async fn order(ctx: &Ctx) -> Result<String> {
    let region: String = ctx.elicit("Which region?").await?;
    Ok(format!("ordered in {region}"))
}

/// Begins a call, and answers its question. The answer is not sent yet.
async fn asked(client: &Client) -> Result<PendingCall> {
    let begun = client.begin(Call::tool("order", ())?).await?;
    let mut pending = begun.pending().ok_or("the tool asks")?;
    let keys: Vec<String> = pending.missing().iter().map(ToString::to_string).collect();
    for key in keys {
        pending.accept(&key, &json!({"value": "eu"}))?;
    }
    Ok(pending)
}

async fn finished(client: &Client, pending: PendingCall) -> String {
    match client.resume(pending).await {
        Ok(progress) => {
            let result = progress.done().and_then(Finished::into_tool);
            result.and_then(|result| result.first_text().map(str::to_owned)).unwrap_or_default()
        }
        Err(error) => error.to_string(),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (clock, hand) = Clock::manual(SystemTime::now());
    let kms = Arc::new(Kms::new()?);
    let codec = EnvelopeCodec::new(kms.wrapped_key()?, clock.clone());
    // A server that cannot get its key does not start.
    codec.refresh(&kms).await?;
    tokio::spawn(codec.clone().keep_fresh(Arc::clone(&kms)));

    let server = Server::builder("orders", "1.0").clock(clock).codec(Box::new(codec.clone())).tool(order);
    let builder = Client::builder("kms-codec", "1.0").declare(AskSupport::ALL);
    let client = memory::connect(server.build()?, builder);
    for _ in 0..100 {
        let pending = asked(&client).await?;
        assert_eq!(finished(&client, pending).await, "ordered in eu");
    }
    println!("100 calls with state, requests to the KMS: {}", kms.requests.load(Ordering::SeqCst));

    kms.is_down.store(true, Ordering::SeqCst);
    let (soon, late) = (asked(&client).await?, asked(&client).await?);
    hand.advance(Duration::from_secs(300));
    println!("the KMS is down for 5 minutes: {}", finished(&client, soon).await);
    hand.advance(Duration::from_secs(3600));
    println!("the KMS is down for an hour: {}", finished(&client, late.clone()).await);
    println!(
        "a refresh: {}",
        codec.refresh(&kms).await.err().map_or(String::new(), |error| error.to_string())
    );

    kms.is_down.store(false, Ordering::SeqCst);
    codec.refresh(&kms).await?;
    println!("the KMS is back, the same call: {}", finished(&client, late).await);
    Ok(())
}
