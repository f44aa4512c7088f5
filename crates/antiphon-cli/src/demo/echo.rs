//! `echo`: a tool that asks nothing.

use antiphon::server::{Ctx, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

pub(super) fn tool() -> Tool {
    Tool::new("echo", echo).description("Says the text back.")
}

async fn echo(_ctx: &Ctx, args: Echo) -> String {
    args.text
}
