//! Invalid attributes of resolvers.
use antiphon::{Result, resolver, tool};

#[resolver(name = "with/slash")]
async fn named() -> Result<u64> {
    Ok(1)
}

#[resolver(title = "Size")]
async fn titled() -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn größe() -> Result<u64> {
    Ok(1)
}

#[tool]
async fn a(#[resolve] size: u64, #[resolve(titled())] b: u64, #[resolve(titled)] #[arg(title = "Size")] c: u64) -> String {
    size.to_string()
}

fn main() {}
