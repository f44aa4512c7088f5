//! A resolver of a resolver takes an argument that the prompt and the resource do not have.
use antiphon::{Result, prompt, resolver, resource, wire::content::ResourceContents};

#[resolver]
async fn size(path: &str) -> Result<u64> {
    Ok(path.len() as u64)
}

#[resolver]
async fn large(#[resolve(size)] size: u64) -> Result<bool> {
    Ok(size > 9)
}

#[prompt]
async fn describe(folder: String, #[resolve(large)] large: bool) -> String {
    format!("{folder} {large}")
}

#[resource("report://{id}")]
async fn report(id: String, #[resolve(large)] large: bool) -> ResourceContents {
    ResourceContents::text(id, large.to_string())
}

fn main() {}
