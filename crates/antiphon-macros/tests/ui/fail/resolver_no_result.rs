//! A resolver may fail, always.
use antiphon::resolver;

#[resolver]
async fn size(path: &str) -> u64 {
    path.len() as u64
}

#[resolver]
async fn nothing() {}

fn main() {}
