#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(default = 1)]
    a: String,
    #[form(default = "1")]
    b: u8,
    #[form(default = "yes")]
    c: bool,
    #[form(default = 1.5)]
    d: i64,
    #[form(default = true)]
    e: Option<f64>,
}

fn main() {}
