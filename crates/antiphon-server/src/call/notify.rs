//! Progress and log messages from a handler.

use crate::Ctx;
use antiphon_wire::LogLevel;
use serde_json::Value;

impl Ctx {
    /// Tells the caller how far this request has come: `progress` of `total`, in any unit, and in words. It is sent at
    /// once, if the caller asked for progress; it must increase, and what does not is not sent.
    ///
    /// > The server **MAY** send progress notifications to report the status of requests the client has issued.
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(emitter) = self.emitter() {
            emitter.progress(progress, total, message);
        }
    }

    /// Ends the event stream that carries this call, while the call goes on: a client of 2025-11-25 comes back for the rest
    /// after the time that the stream named. For work of minutes, so that no connection is held for it.
    ///
    /// It does nothing elsewhere: not on 2026-07-28, where a stream that ends is a call that is cancelled, and not on stdio.
    ///
    /// > The server **MAY** close the connection (without terminating the SSE stream) at any time
    pub fn close_stream(&self) {
        self.leg_runtime().carrier().close_stream();
    }

    /// Sends the caller a log message, if it asked for messages of this level and the server declares
    /// [`logging`](super::ServerBuilder::logging). Never secrets: it leaves the house.
    ///
    /// Deprecated in 2026-07-28: log with `tracing`, to standard error or to OpenTelemetry.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        if let Some(emitter) = self.emitter() {
            emitter.log(level, None, || data.into());
        }
    }

    /// The same, under the name of a logger.
    pub fn log_as(&self, level: LogLevel, logger: &str, data: impl Into<Value>) {
        if let Some(emitter) = self.emitter() {
            emitter.log(level, Some(logger), || data.into());
        }
    }
}
