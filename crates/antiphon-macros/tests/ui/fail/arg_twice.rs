use antiphon::tool;

#[tool]
async fn provision(#[arg(name = "region")] place: String, region: String) -> String {
    place + &region
}

fn main() {}
