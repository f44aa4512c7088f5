//! Resolvers that depend on each other, and a resolver that depends on itself.
use antiphon::{Result, resolver, tool};

#[resolver]
async fn first(#[resolve(second)] second: u64) -> Result<u64> {
    Ok(second)
}

#[resolver]
async fn second(#[resolve(third)] third: u64) -> Result<u64> {
    Ok(third)
}

#[resolver]
async fn third(#[resolve(first)] first: u64) -> Result<u64> {
    Ok(first)
}

#[resolver]
async fn own(#[resolve(own)] own: u64) -> Result<u64> {
    Ok(own)
}

#[tool]
async fn a(#[resolve(first)] first: u64) -> String {
    first.to_string()
}

fn main() {}
