use antiphon::tool;

#[tool]
async fn borrowed(name: &str) -> &str {
    name
}

#[tool]
async fn opaque() -> impl std::fmt::Display {
    "text"
}

#[tool]
async fn failing() -> Result<String, impl std::fmt::Display> {
    Err("text")
}

fn main() {}
