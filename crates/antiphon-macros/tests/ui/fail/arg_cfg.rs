use antiphon::tool;

#[tool]
async fn provision(#[cfg(feature = "region")] region: String) {}

fn main() {}
