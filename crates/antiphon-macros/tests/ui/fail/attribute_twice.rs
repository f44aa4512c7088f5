#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(title = "A", title = "B")]
    a: String,
    #[form(min = 1)]
    #[form(min = 2)]
    b: u8,
}

fn main() {}
