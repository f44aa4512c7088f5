use antiphon::tool;

#[tool(name = "order database")]
async fn spaced() {}

#[tool(name = "")]
async fn empty() {}

#[tool]
async fn größe() {}

fn main() {}
