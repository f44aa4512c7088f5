use antiphon::{resource, wire::content::ResourceContents};

#[resource("report://{year}/{id}")]
async fn report(id: String) -> ResourceContents {
    ResourceContents::text(id, "")
}

#[resource("report://all")]
async fn all(page: String) -> ResourceContents {
    ResourceContents::text(page, "")
}

#[resource("report://all{/path*}{?page}")]
async fn pages() -> ResourceContents {
    ResourceContents::text("a://b", "")
}

fn main() {}
