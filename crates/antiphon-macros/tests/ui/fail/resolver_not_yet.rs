use antiphon::tool;

#[tool]
async fn delete(path: String, #[resolve(confirm)] confirm: bool) -> String {
    format!("{path} {confirm}")
}

#[tool]
async fn twice(#[resolve(confirm)] #[resolve(other)] confirm: bool) -> String {
    confirm.to_string()
}

#[tool]
async fn unnamed(#[resolve] confirm: bool) -> String {
    confirm.to_string()
}

#[tool]
async fn called(#[resolve(confirm(path))] confirm: bool) -> String {
    confirm.to_string()
}

fn main() {}
