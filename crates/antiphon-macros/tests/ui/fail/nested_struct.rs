#[derive(serde::Deserialize, antiphon::Form)]
struct Inner {
    a: String,
}

#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    inner: Inner,
    more: Vec<Inner>,
}

fn main() {}
