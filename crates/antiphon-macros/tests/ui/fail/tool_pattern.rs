use antiphon::{server::State, tool};

#[tool]
async fn provision((name, region): (String, String), _: u8) -> String {
    name + &region
}

#[tool]
async fn bound(ref name: String, whole @ State(_): State<u8>) -> String {
    format!("{name} {}", whole.0)
}

fn main() {}
