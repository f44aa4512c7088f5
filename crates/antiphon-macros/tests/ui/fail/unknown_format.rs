#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(format = "password")]
    a: String,
}

fn main() {}
