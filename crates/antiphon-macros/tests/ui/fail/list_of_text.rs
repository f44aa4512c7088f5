#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    tags: Vec<String>,
    maybe: Vec<Option<bool>>,
}

fn main() {}
