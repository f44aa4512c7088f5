//! Progress and log messages from a handler.

use crate::call::ctx::Ctx;
use antiphon_wire::LogLevel;
use serde_json::Value;

impl Ctx {
    /// Reports the progress of this request to the caller: `progress` of `total`, in any unit, with a message. It is
    /// sent at once, if the caller requested progress. The value must increase; a value that does not is not sent.
    ///
    /// > The server **MAY** send progress notifications to report the status of requests the client has issued.
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(emitter) = self.emitter() {
            emitter.progress(progress, total, message);
        }
    }

    /// Ends the event stream of this call while the call continues: a client of 2025-11-25 reconnects after the time
    /// that the stream named. Use it for work of minutes, so that no connection stays open.
    ///
    /// It has no effect on 2026-07-28, where the end of a stream cancels the call, nor on stdio.
    ///
    /// > The server **MAY** close the connection (without terminating the SSE stream) at any time
    pub fn close_stream(&self) {
        self.leg_runtime().carrier().close_stream();
    }

    /// Sends the caller a log message, if the caller requested this level and the server declares
    /// [`logging`](crate::ServerBuilder::logging). Never log secrets: the message is sent to the client.
    ///
    /// Deprecated in 2026-07-28: log with `tracing`, to standard error or to OpenTelemetry.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        if let Some(emitter) = self.emitter() {
            emitter.log(level, None, || data.into());
        }
    }

    /// Sends a log message under the name of a logger. See [`log`](Self::log).
    pub fn log_as(&self, level: LogLevel, logger: &str, data: impl Into<Value>) {
        if let Some(emitter) = self.emitter() {
            emitter.log(level, Some(logger), || data.into());
        }
    }
}
