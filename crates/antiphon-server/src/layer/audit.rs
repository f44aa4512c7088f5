//! An audit log: one line of JSON for each request, chained by hashes.

use crate::layer::{
    CallService,
    call::{Call, CallReply, Outcome, Refused},
};
use antiphon_wire::{escaped, lock::Lock, method};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    fmt,
    io::{self, Write},
    sync::Arc,
    task::{Context, Poll},
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that writes one line of JSON for each leg of a call, with its answers by key and action, and what became of it. Texts of
/// arguments, answers and results are not in it: arguments by their SHA-256.
///
/// ```
/// use antiphon::server::{Server, layers::AuditLog};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let audit = AuditLog::new(Vec::new());
/// let server = Server::builder("orders", "1.0").layer(audit.clone()).build()?;
/// # Ok(()) }
/// ```
///
/// Each line has the hash of the one before it in `previous`, and its own in `hash`: the SHA-256 of the line without that member. A line that is changed
/// or removed later shows, unless the end of the log is removed as well. A call whose line cannot be written is refused before its handler
/// runs; what the handler did is not taken back if the second line fails, and an error is logged.
#[derive(Clone)]
pub struct AuditLog(Arc<Lock<Chain>>);

struct Chain {
    output: Box<dyn Write + Send>,
    number: u64,
    previous: String,
}

impl AuditLog {
    /// Returns a layer that writes to this output, such as a file that is opened for appending.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self::after(output, 0, "")
    }

    /// Returns a layer that continues a log whose last line has this number and this hash.
    pub fn after(output: impl Write + Send + 'static, number: u64, hash: impl Into<String>) -> Self {
        Self(Arc::new(Lock::new(Chain { output: Box::new(output), number, previous: hash.into() })))
    }

    fn write(&self, mut line: Value) -> io::Result<()> {
        let mut chain = self.0.lock();
        line["number"] = json!(chain.number + 1);
        line["previous"] = json!(chain.previous);
        let hash = hex(&Sha256::digest(line.to_string()));
        line["hash"] = json!(hash);
        writeln!(chain.output, "{line}")?;
        chain.output.flush()?;
        (chain.number, chain.previous) = (chain.number + 1, hash);
        Ok(())
    }
}

impl Layer<CallService> for AuditLog {
    type Service = Audited;

    fn layer(&self, inner: CallService) -> Audited {
        Audited { log: self.clone(), inner }
    }
}

/// The service of [`AuditLog`].
#[derive(Clone, Debug)]
pub struct Audited {
    log: AuditLog,
    inner: CallService,
}

impl Service<Call> for Audited {
    type Response = CallReply;
    type Error = Refused;
    type Future = BoxFuture<'static, Result<CallReply, Refused>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        if !matches!(call.method(), method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ) {
            return self.inner.call(call);
        }
        let (mut line, log, begin) = (line(&call), self.log.clone(), Instant::now());
        let reply = self.inner.call(call);
        Box::pin(async move {
            line["event"] = json!("begins");
            log.write(line.clone()).map_err(|fault| {
                tracing::error!(fault = %escaped(&fault), "the audit log cannot be written: a call is refused");
                Refused::internal()
            })?;
            let reply = reply.await;
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
            if let Err(fault) = log.write(line) {
                tracing::error!(fault = %escaped(&fault), "the audit log cannot be written: the end of a call is missing in it");
            }
            reply
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
