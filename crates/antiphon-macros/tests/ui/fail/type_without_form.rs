#[derive(serde::Deserialize)]
struct Place {
    region: String,
}

fn main() {
    antiphon::server::Ask::of::<Place>("place", "Where?");
}
