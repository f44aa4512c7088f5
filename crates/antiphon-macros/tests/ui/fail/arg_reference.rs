use antiphon::tool;

#[tool]
async fn provision(name: &String, tags: &[String], text: &mut str) -> String {
    format!("{name} {tags:?} {text}")
}

fn main() {}
