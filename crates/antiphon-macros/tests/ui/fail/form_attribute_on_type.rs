#[derive(serde::Deserialize, antiphon::Form)]
#[form(title = "Place")]
struct Asked {
    a: String,
}

fn main() {}
