#![allow(unreachable_patterns)]

#[derive(serde::Deserialize, antiphon::Form)]
#[serde(rename_all = "camelCase")]
struct Asked {
    a_b: String,
    #[serde(rename = "aB")]
    c: String,
}

fn main() {}
