#![allow(unreachable_patterns)]

#[derive(antiphon::Form)]
enum Nothing {}

#[derive(serde::Deserialize, antiphon::Form)]
enum Size {
    Small,
    #[serde(rename = "Small")]
    Tiny,
    #[form(description = "x")]
    Large,
}

fn main() {}
