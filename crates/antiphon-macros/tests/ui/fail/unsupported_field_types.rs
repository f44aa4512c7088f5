#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    id: u128,
    other: Option<i128>,
    letter: char,
}

fn main() {}
