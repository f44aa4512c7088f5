#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    pair: (String, String),
    map: std::collections::HashMap<String, String>,
    few: [u8; 2],
    boxed: Box<String>,
    twice: Option<Option<String>>,
}

fn main() {}
