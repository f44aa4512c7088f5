use antiphon::{resource, wire::ResourceContents};

#[resource("report://{year}/{id}")]
async fn report(id: String) -> ResourceContents {
    ResourceContents::text(id, "")
}

#[resource("report://all")]
async fn all(page: String) -> ResourceContents {
    ResourceContents::text(page, "")
}

fn main() {}
