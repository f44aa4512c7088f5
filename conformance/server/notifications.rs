//! Tools that send progress and log messages.

use antiphon::{
    server::{Ctx, NoArguments, ServerBuilder, Tool},
    wire::LogLevel,
};
use std::time::Duration;

/// The pause between two messages: short enough for the suite's timeout, and long enough to keep the order of messages.
const STEP: Duration = Duration::from_millis(50);

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .logging(true)
        .tool(Tool::new("test_tool_with_progress", with_progress).description("Reports its progress."))
        // The suite has a name for each revision.
        .tool(Tool::new("test_logging_tool", with_logging).description("Logs what it does."))
        .tool(Tool::new("test_tool_with_logging", with_logging).description("Logs what it does."))
        .tool(
            Tool::new("test_reconnection", reconnection)
                .description("Takes a while, and holds no connection meanwhile."),
        )
}

async fn with_progress(ctx: &Ctx, _: NoArguments) -> &'static str {
    ctx.report_progress(0.0, Some(100.0), Some("Begun"));
    tokio::time::sleep(STEP).await;
    ctx.report_progress(50.0, Some(100.0), Some("Half way"));
    tokio::time::sleep(STEP).await;
    ctx.report_progress(100.0, Some(100.0), Some("Done"));
    "Three reports of progress were made, if you asked for them."
}

async fn with_logging(ctx: &Ctx, _: NoArguments) -> &'static str {
    ctx.log(LogLevel::Info, "Tool execution started");
    tokio::time::sleep(STEP).await;
    ctx.log(LogLevel::Info, "Tool processing data");
    tokio::time::sleep(STEP).await;
    ctx.log_as(LogLevel::Info, "conformance", "Tool execution completed");
    "Three messages were logged, if you asked for them."
}

async fn reconnection(ctx: &Ctx, _: NoArguments) -> &'static str {
    ctx.close_stream();
    tokio::time::sleep(2 * STEP).await;
    "It took a while."
}
