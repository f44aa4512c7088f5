//! Functions without `#[resolver]`, under the name of the parameter and under another name.
use antiphon::{Result, tool};

async fn size() -> Result<u64> {
    Ok(1)
}

#[tool]
async fn a(#[resolve(size)] size: u64, #[resolve(self::size)] other: u64) -> String {
    (size + other).to_string()
}

fn main() {}
