//! A resolver takes an argument of the right name and of the wrong type.
use antiphon::{Result, resolver, tool};

#[resolver]
async fn half(count: u64) -> Result<u64> {
    Ok(count / 2)
}

#[resolver]
async fn length(path: &Vec<u8>) -> Result<usize> {
    Ok(path.len())
}

#[tool]
async fn halve(count: u32, #[resolve(half)] half: u64) -> String {
    format!("{count} {half}")
}

#[tool]
async fn measure(path: String, #[resolve(length)] length: usize) -> String {
    format!("{path} {length}")
}

fn main() {}
