//! A resolver takes an argument that the tool does not have. The compiler reports only the failed check.
use antiphon::{Result, resolver, tool};

#[resolver]
async fn size(pth: &str) -> Result<u64> {
    Ok(pth.len() as u64)
}

#[tool]
async fn delete_folder(path: String, force: bool, #[resolve(size)] size: u64) -> String {
    format!("{path} {force} {size}")
}

#[tool]
async fn without_any(#[resolve(size)] size: u64) -> String {
    size.to_string()
}

fn main() {}
