use antiphon::tool;

#[tool]
async fn provision(name: &String, tags: &[String], text: &mut str) -> String {
    format!("{name} {tags:?} {text}")
}

#[tool]
async fn maybe(name: Option<&str>, tags: Vec<Option<&'static str>>) -> String {
    format!("{name:?} {tags:?}")
}

fn main() {}
