use antiphon::{server::State, tool};

#[tool]
async fn find(db: &State<u8>) -> String {
    db.to_string()
}

fn main() {}
