use antiphon::tool;

#[tool(title)]
async fn untitled() {}

#[tool(title = 3)]
async fn numbered() {}

#[tool(read_only = "yes")]
async fn read() {}

#[tool(version = "3")]
async fn versioned() {}

#[tool(version = -1)]
async fn negative() {}

#[tool(description = "")]
async fn nothing() {}


fn main() {}
