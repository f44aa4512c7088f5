use antiphon::{server::State, tool};
use std::cell::Cell;

#[tool]
async fn find(db: State<Cell<u8>>) -> String {
    db.get().to_string()
}

fn main() {}
