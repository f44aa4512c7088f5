use antiphon::{prompt, resource};

#[resource("report://{id}", on_version = "later")]
async fn report(id: String) -> antiphon::wire::ResourceContents {
    antiphon::wire::ResourceContents::text(id, "")
}

#[prompt(rename("draft"))]
async fn review() -> String {
    String::new()
}

fn main() {}
