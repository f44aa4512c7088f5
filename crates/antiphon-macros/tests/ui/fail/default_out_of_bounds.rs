#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(min = 1, max = 5, default = 6)]
    a: u8,
    #[form(default = 256)]
    b: u8,
    #[form(min_length = 3, default = "ab")]
    c: String,
    #[form(min = 0.5, default = 0)]
    d: f64,
    #[form(format = "date", default = "tomorrow")]
    e: String,
    #[form(min = -1)]
    f: u32,
    #[form(max = 1e300)]
    g: f32,
}

fn main() {}
