#[derive(serde::Deserialize, antiphon::Form)]
enum Size {
    Small,
    Custom(u8),
    Named { a: u8 },
}

fn main() {}
