#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(min = 5, max = 1)]
    a: u8,
    #[form(min_length = 5, max_length = 1)]
    b: String,
}

fn main() {}
