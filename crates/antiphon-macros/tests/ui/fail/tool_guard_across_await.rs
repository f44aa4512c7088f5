use antiphon::{
    Form,
    server::{Ctx, State},
    tool,
};
use std::sync::Mutex;

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[tool]
async fn provision(ctx: &Ctx, State(names): State<Mutex<Vec<String>>>) -> antiphon::Result<String> {
    let mut names = names.lock().unwrap();
    let Region { region } = ctx.elicit("Where?").await?;
    names.push(region);
    Ok(names.concat())
}

fn main() {}
