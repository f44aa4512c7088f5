//! A parameter takes the value of a resolver as another type.
use antiphon::{Form, Result, resolver, server::Answer, tool};

#[derive(Clone, serde::Deserialize, Form)]
struct Confirm {
    ok: bool,
}

#[resolver]
async fn size() -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn confirm() -> Result<Answer<Confirm>> {
    Ok(Answer::Decline)
}

#[tool]
async fn a(#[resolve(size)] size: String) -> String {
    size
}

#[resolver]
async fn b(#[resolve(confirm)] confirm: bool) -> Result<bool> {
    Ok(confirm)
}

#[tool]
async fn c(#[resolve(size)] size: &u32) -> String {
    size.to_string()
}

fn main() {}
