use antiphon::tool;

#[tool(version = 2, forget)]
async fn nothing_alone() {}

#[tool(version = 2, forget())]
async fn nothing() {}

#[tool(version = 2, forget(warm_up))]
async fn unquoted() {}

#[tool(version = 2, keep_stale = "quote")]
async fn assigned() {}

#[tool(version = 2, forget(""))]
async fn empty() {}

#[tool(version = 2, forget("warm_up", create))]
async fn half_quoted() {}

#[tool(version = 2, on_version = "restart", forget("warm_up"))]
async fn nothing_is_kept() {}

fn main() {}
