//! An audit log: one line of JSON for each request, chained by hashes.

use super::{
    CallService,
    call::{Call, Refused},
    limits::uses_an_offer,
};
use crate::receipt::hex;
use antiphon_wire::escaped;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    fmt,
    io::{self, Write},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{Mutex, Semaphore};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that writes one line of JSON for each leg of a call, with its answers by key and action, and what became of it. Texts of
/// arguments, answers and results are not in it: arguments by their SHA-256.
///
/// ```
/// use antiphon::server::{Server, layers::AuditLog};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let audit = AuditLog::new(Vec::new());
/// let server = Server::builder("orders", "1.0").layer(audit.clone()).build()?;
/// // At the end of the process:
/// audit.flush().await?;
/// # Ok(()) }
/// ```
///
/// Each line has the hash of the one before it in `previous`, and its own in `hash`: the SHA-256 of the line without that member. A line that is changed
/// or removed later shows, unless the end of the log is removed as well.
///
/// Lines are written one at a time, in their order, on a thread for blocking work; at most 1,024 legs wait for their first line. A leg runs
/// once that line is written: if it cannot be written, the leg is refused, and if too many legs wait, it is refused as busy. The reply waits
/// for the second line, but what the handler did is not taken back if the line cannot be written: an error is logged. A leg without a second
/// line was cancelled, or its process died.
#[derive(Clone, Debug)]
pub struct AuditLog {
    /// A fair lock: lines are in the order of their legs.
    chain: Arc<Mutex<HashChain>>,
    places: Arc<Semaphore>,
}

/// The number of legs that may wait for their first line.
const WAITING: usize = 1024;

impl AuditLog {
    /// Returns a layer that writes to this output, such as a file that is opened for appending.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self::after(output, 0, "")
    }

    /// Returns a layer that continues a log whose last line has this number and this hash.
    pub fn after(output: impl Write + Send + 'static, number: u64, hash: impl Into<String>) -> Self {
        let chain = Arc::new(Mutex::new(HashChain::after(output, number, hash.into())));
        Self { chain, places: Arc::new(Semaphore::new(WAITING)) }
    }

    /// Waits until all lines are written that were begun before.
    ///
    /// # Errors
    /// If the output cannot be flushed.
    pub async fn flush(&self) -> io::Result<()> {
        self.in_turn(|chain| chain.flush()).await
    }

    /// Writes the first line of a leg.
    async fn begin(&self, line: Value) -> Result<(), Refused> {
        let _place = self.places.try_acquire().map_err(|_full| Refused::busy(Duration::from_secs(1)))?;
        self.in_turn(|chain| chain.write(line)).await.map_err(|fault| {
            tracing::error!(fault = %escaped(&fault), "the audit log cannot be written: a call is refused");
            Refused::internal()
        })
    }

    /// Writes the second line of a leg.
    async fn end(&self, line: Value) {
        if let Err(fault) = self.in_turn(|chain| chain.write(line)).await {
            tracing::error!(fault = %escaped(&fault), "the audit log cannot be written: the end of a call is missing in it");
        }
    }

    /// Does this with the log, on a thread that the output may hold. It is done to its end, also if nobody waits any more.
    async fn in_turn(
        &self,
        act: impl FnOnce(&mut HashChain) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let mut chain = Arc::clone(&self.chain).lock_owned().await;
        tokio::task::spawn_blocking(move || act(&mut chain)).await?
    }
}

impl Layer<CallService> for AuditLog {
    type Service = CallService;

    fn layer(&self, inner: CallService) -> CallService {
        let log = self.clone();
        inner.inside_of(move |call, mut inner| {
            let (log, line) = (log.clone(), uses_an_offer(&call).then(|| line(&call)));
            async move {
                let Some(mut line) = line else { return inner.call(call).await };
                let begin = Instant::now();
                log.begin(line.clone()).await?;
                let reply = inner.call(call).await;
                line["event"] = json!("ends");
                line["milliseconds"] = json!(begin.elapsed().as_millis() as u64);
                match &reply {
                    Ok(reply) => line["outcome"] = json!(reply.outcome().name()),
                    Err(refused) => {
                        line["outcome"] = json!("refused");
                        (line["code"], line["reason"]) =
                            (json!(refused.error().code), json!(refused.reason()));
                    }
                }
                log.end(line).await;
                reply
            }
        })
    }
}

fn line(call: &Call) -> Value {
    let principal = call.principal();
    let answers: Vec<_> = call.answers().map(|(key, action)| json!({"key": key, "action": action})).collect();
    json!({
        "event": "begins",
        "time": SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        "method": call.method(),
        "target": call.target(),
        "issuer": principal.and_then(|principal| principal.issuer()),
        "subject": principal.and_then(|principal| principal.subject()),
        "client": principal.and_then(|principal| principal.client_id()),
        "call": call.call_id().map(|id| id.to_string()),
        "leg": call.leg(),
        "task": call.is_of_task(),
        "arguments": call.arguments().map(|text| hash_of(text.get())),
        "answers": answers,
    })
}

/// Lines of JSON, each with its number, the hash of the one before it, and its own.
struct HashChain {
    output: Box<dyn Write + Send>,
    number: u64,
    previous: String,
    /// True if a part of a line may be the end of the log.
    is_torn: bool,
}

impl HashChain {
    /// Returns the log behind a line with this number and this hash.
    pub(super) fn after(output: impl Write + Send + 'static, number: u64, hash: String) -> Self {
        Self { output: Box::new(output), number, previous: hash, is_torn: false }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Writes a line.
    pub(super) fn write(&mut self, mut line: Value) -> io::Result<()> {
        line["number"] = json!(self.number + 1);
        line["previous"] = json!(self.previous);
        let hash = hash_of(&line.to_string());
        line["hash"] = json!(hash);
        // What is left of a line that could not be written stands alone.
        let begin = if self.is_torn { "\n" } else { "" };
        self.is_torn = true;
        self.output.write_all(format!("{begin}{line}\n").as_bytes())?;
        // The line is there, whatever becomes of the flush: the next one follows it.
        (self.number, self.previous, self.is_torn) = (self.number + 1, hash, false);
        self.output.flush()
    }
}

/// Returns the SHA-256 of a text, in hexadecimal digits.
fn hash_of(text: &str) -> String {
    hex(&Sha256::digest(text))
}

impl fmt::Debug for HashChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashChain").field("number", &self.number).finish_non_exhaustive()
    }
}
