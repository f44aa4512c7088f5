use antiphon::tool;

#[tool(version = 2, on_version = "drop")]
async fn unknown() {}

#[tool(version = 2, on_version = reject)]
async fn unquoted() {}

#[tool(version = 2, on_version)]
async fn alone() {}

#[tool(version = 2, on_version("reject"))]
async fn listed() {}

#[tool(lenient_replay = "yes")]
async fn text() {}

#[tool(lenient_replay("create"))]
async fn named() {}

fn main() {}
