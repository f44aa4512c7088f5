//! The return type of a resolver must be a Result.
use antiphon::resolver;

#[resolver]
async fn size(path: &str) -> u64 {
    path.len() as u64
}

#[resolver]
async fn nothing() {}

fn main() {}
