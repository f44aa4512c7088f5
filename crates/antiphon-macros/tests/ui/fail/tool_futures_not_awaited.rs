#![deny(unused_must_use)]

use antiphon::{Form, server::Ctx, tool};

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[tool]
async fn asked_in_vain(ctx: &Ctx) {
    ctx.elicit::<Region>("Where?");
    ctx.step("create", async |_| Ok(1));
    ctx.checkpoint();
    other();
}

#[tool]
async fn other() {}

fn main() {}
