use antiphon::tool;

#[tool]
async fn lists(#[arg(header = "Region")] regions: Vec<String>) -> String {
    regions.concat()
}

#[tool]
async fn floats(#[arg(header = "Share")] share: f64) -> String {
    share.to_string()
}

#[tool]
async fn unfit(#[arg(header = "My Region")] region: String) -> String {
    region
}

fn main() {}
