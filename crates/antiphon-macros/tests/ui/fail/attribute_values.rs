#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(title)]
    a: String,
    #[form(title = 1)]
    b: String,
    #[form(min_length = -1)]
    c: String,
    #[form(not_secret = true)]
    d: String,
    #[form(default = some())]
    e: String,
    #[form(default = -"a")]
    f: String,
}

fn main() {}
