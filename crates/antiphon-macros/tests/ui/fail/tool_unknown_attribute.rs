use antiphon::tool;

#[tool(readonly)]
async fn provision() {}

#[tool(mime_type = "text/plain")]
async fn read() {}

#[tool]
async fn find(#[arg(format = "email")] name: String) -> String {
    name
}

fn main() {}
