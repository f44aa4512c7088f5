//! A resolver takes an argument that the method does not have.
use antiphon::{Result, resolver, server};

#[resolver]
async fn size(path: &str) -> Result<u64> {
    Ok(path.len() as u64)
}

struct Files<T>(T);

#[server]
impl<T> Files<T> {
    #[tool]
    async fn count(&self, #[arg(name = "path")] folder: String, #[resolve(size)] size: u64) -> String {
        format!("{folder} {size}")
    }
}

fn main() {}
