//! An audit log: one line of JSON for each request, chained by hashes.

use crate::layer::{
    CallService,
    call::{Call, Outcome, Refused},
};
use antiphon_wire::{escaped, method};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    fmt,
    io::{self, Write},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};
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
/// A thread of the log writes the lines, in their order; at most 1,024 of them wait for it. A leg runs once its first line is written: if
/// the line cannot be written, the leg is refused, and if too many lines wait, it is refused as busy. The second line is written behind the
/// reply. It waits for its place, but what the handler did is not taken back if the line cannot be written: an error is logged. A leg without a
/// second line was cancelled, or its process died.
#[derive(Clone)]
pub struct AuditLog(mpsc::Sender<Entry>);

/// The number of lines that may wait for the thread.
const WAITING: usize = 1024;

/// The thread is gone after a panic of the output, or never began.
const GONE: &str = "the thread of the audit log is gone";

/// A line for the thread, or a mark, and the place of its result.
struct Entry {
    line: Option<Value>,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

impl AuditLog {
    /// Returns a layer that writes to this output, such as a file that is opened for appending, and begins its thread.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self::after(output, 0, "")
    }

    /// Returns a layer that continues a log whose last line has this number and this hash.
    pub fn after(output: impl Write + Send + 'static, number: u64, hash: impl Into<String>) -> Self {
        let (sender, entries) = mpsc::channel(WAITING);
        let chain = Chain { output, number, previous: hash.into() };
        let thread = thread::Builder::new().name("antiphon-audit".to_owned());
        // Without a thread, the receiver is dropped, and each leg is refused.
        if let Err(fault) = thread.spawn(move || chain.write_all(entries)) {
            tracing::error!(fault = %escaped(&fault), "the thread of the audit log cannot be started: calls are refused");
        }
        Self(sender)
    }

    /// Waits until all lines are written that were sent before.
    ///
    /// # Errors
    /// If the output cannot be flushed, or its thread is gone.
    pub async fn flush(&self) -> io::Result<()> {
        let (written, result) = oneshot::channel();
        let mark = Entry { line: None, written: Some(written) };
        self.0.send(mark).await.map_err(|_| io::Error::other(GONE))?;
        result.await.map_err(|_| io::Error::other(GONE))?
    }

    /// Writes the first line of a leg.
    async fn begin(&self, line: Value) -> Result<(), Refused> {
        let (written, result) = oneshot::channel();
        let refused = |fault: &dyn fmt::Display| {
            tracing::error!(fault = %escaped(&fault), "the audit log cannot be written: a call is refused");
            Refused::internal()
        };
        match self.0.try_send(Entry { line: Some(line), written: Some(written) }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(Refused::busy(RETRY_AFTER)),
            Err(TrySendError::Closed(_)) => return Err(refused(&GONE)),
        }
        match result.await {
            Ok(written) => written.map_err(|fault| refused(&fault)),
            Err(_) => Err(refused(&GONE)),
        }
    }

    /// Writes the second line of a leg, once there is a place for it.
    async fn end(&self, line: Value) {
        if self.0.send(Entry { line: Some(line), written: None }).await.is_err() {
            tracing::error!(
                fault = GONE,
                "the audit log cannot be written: the end of a call is missing in it"
            );
        }
    }
}

/// The time after which a client may try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The log, in its thread.
struct Chain<W> {
    output: W,
    number: u64,
    previous: String,
}

impl<W: Write> Chain<W> {
    /// Writes entries until the last layer is dropped.
    fn write_all(mut self, mut entries: mpsc::Receiver<Entry>) {
        while let Some(Entry { line, written }) = entries.blocking_recv() {
            let result = match line {
                Some(line) => self.write(line),
                None => self.output.flush(),
            };
            match (written, result) {
                // The leg may be cancelled: nobody waits then.
                (Some(written), result) => drop(written.send(result)),
                (None, Err(fault)) => {
                    tracing::error!(fault = %escaped(&fault), "the audit log cannot be written: the end of a call is missing in it");
                }
                (None, Ok(())) => {}
            }
        }
    }

    fn write(&mut self, mut line: Value) -> io::Result<()> {
        line["number"] = json!(self.number + 1);
        line["previous"] = json!(self.previous);
        let hash = hex(&Sha256::digest(line.to_string()));
        line["hash"] = json!(hash);
        writeln!(self.output, "{line}")?;
        self.output.flush()?;
        (self.number, self.previous) = (self.number + 1, hash);
        Ok(())
    }
}

impl Layer<CallService> for AuditLog {
    type Service = CallService;

    fn layer(&self, inner: CallService) -> CallService {
        let log = self.clone();
        inner.inside_of(move |call, mut inner| {
            let is_call =
                matches!(call.method(), method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ);
            let (log, line) = (log.clone(), is_call.then(|| line(&call)));
            async move {
                let Some(mut line) = line else { return inner.call(call).await };
                let begin = Instant::now();
                line["event"] = json!("begins");
                log.begin(line.clone()).await?;
                let reply = inner.call(call).await;
                line["event"] = json!("ends");
                line["milliseconds"] = json!(begin.elapsed().as_millis() as u64);
                match &reply {
                    Ok(reply) => line["outcome"] = json!(name_of(reply.outcome())),
                    Err(refused) => {
                        line["outcome"] = json!("refused");
                        line["code"] = json!(refused.error().code);
                        line["reason"] = json!(refused.reason());
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
    let arguments = call.arguments().map(|text| hex(&Sha256::digest(text.get())));
    let answers: Vec<_> = call.answers().map(|(key, action)| json!({"key": key, "action": action})).collect();
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "time": time.as_secs_f64(),
        "method": call.method(),
        "target": call.target(),
        "issuer": principal.and_then(|principal| principal.issuer()),
        "subject": principal.and_then(|principal| principal.subject()),
        "client": principal.and_then(|principal| principal.client_id()),
        "call": call.call_id().map(|id| id.to_string()),
        "leg": call.leg(),
        "task": call.is_of_task(),
        "arguments": arguments,
        "answers": answers,
    })
}

fn name_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete { is_error: false } => "complete",
        Outcome::Complete { is_error: true } => "error",
        Outcome::Asked => "asked",
        Outcome::Task => "task",
        Outcome::Subscribed => "subscribed",
        Outcome::Notified => "notified",
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}
