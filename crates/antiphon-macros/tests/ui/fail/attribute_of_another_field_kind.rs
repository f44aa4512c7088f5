#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(min = 1)]
    a: String,
    #[form(max_length = 1)]
    b: u8,
    #[form(format = "email")]
    c: bool,
}

fn main() {}
