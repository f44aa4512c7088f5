use antiphon::tool;

struct Neither;

#[derive(serde::Deserialize)]
struct NoSchema;

#[tool]
async fn provision(neither: Neither, no_schema: NoSchema, list: Vec<Neither>) -> String {
    let _ = (neither, no_schema, list);
    String::new()
}

fn main() {}
