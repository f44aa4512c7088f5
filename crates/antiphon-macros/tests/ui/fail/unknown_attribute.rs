#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(titel = "A")]
    a: String,
    #[form(pattern = "x")]
    b: String,
}

fn main() {}
