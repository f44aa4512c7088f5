//! Results of several kinds: a structured result comes first, and only once.

use antiphon::{server::Json, tool};

#[tool]
async fn behind() -> (String, Json<u8>) {
    (String::new(), Json(1))
}

#[tool]
async fn number() -> (Json<u8>, u8) {
    (Json(1), 1)
}

#[tool]
async fn first() -> (u8, String) {
    (1, String::new())
}

fn main() {}
