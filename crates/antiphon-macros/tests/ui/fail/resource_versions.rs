use antiphon::{prompt, resource};

#[resource("report://{id}", on_version = "later")]
async fn report(id: String) -> antiphon::wire::content::ResourceContents {
    antiphon::wire::content::ResourceContents::text(id, "")
}

#[prompt(rename("draft"))]
async fn review() -> String {
    String::new()
}

fn main() {}
