use antiphon::tool;

#[tool]
async fn provision(#[cfg(unix)] region: String) {}

fn main() {}
