use antiphon::tool;

#[tool]
async fn provision<T: Into<String>>(name: T) -> String {
    name.into()
}

#[tool]
async fn sized<const N: usize>() {}

#[tool]
async fn implied(name: impl Into<String>) -> String {
    name.into()
}

fn main() {}
