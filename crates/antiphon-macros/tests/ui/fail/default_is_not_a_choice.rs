#[derive(serde::Deserialize, antiphon::Form)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(default = "Small")]
    size: Size,
    #[form(default = ["small", "huge"])]
    sizes: Vec<Size>,
}

fn main() {}
