//! A resolver that does not exist.
use antiphon::{Result, resolver, tool};

#[tool]
async fn a(#[resolve(size)] size: u64) -> String {
    size.to_string()
}

#[resolver]
async fn b(#[resolve(files::size)] size: u64) -> Result<u64> {
    Ok(size)
}

mod files {}

fn main() {}
