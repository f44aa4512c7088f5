#[derive(serde::Deserialize, antiphon::Form)]
struct Pair(String, String);

#[derive(serde::Deserialize, antiphon::Form)]
struct Unit;

#[derive(antiphon::Form)]
union Either {
    a: u8,
}

fn main() {}
