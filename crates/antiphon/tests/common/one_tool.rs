//! A server with one tool `t`, from the body of its handler.
#![allow(unused_macros, unused_imports, reason = "each test program uses its part")]

use super::ring;
use antiphon::server::{Limits, Server, ServerBuilder, Tool, operations::ReplayCheck};

/// Creates the tool `t` from the body of its handler.
macro_rules! tool {
    (|$ctx:ident| $body:block) => {
        Tool::new("t", async |$ctx: &Ctx, _: NoArguments| -> Result<String> { $body })
    };
}
pub(crate) use tool;

pub fn server(tool: Tool) -> Server {
    limited(tool, |limits| limits)
}

pub fn limited(tool: Tool, change: impl FnOnce(Limits) -> Limits) -> Server {
    let limits = change(Limits::default());
    built(tool, |builder| builder.limits(limits))
}

pub fn built(tool: Tool, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    let builder = Server::builder("await", "1").replay_check(ReplayCheck::Off).tool(tool).keys(ring(7));
    change(builder).build().unwrap()
}
