//! A function that is no resolver, and a type that is none.
use antiphon::{Result, tool};

async fn size() -> Result<u64> {
    Ok(1)
}

struct Place;

#[tool]
async fn a(#[resolve(size)] size: u64) -> String {
    size.to_string()
}

#[tool]
async fn b(#[resolve(Place)] size: u64) -> String {
    size.to_string()
}

fn main() {}
