use antiphon::{resource, wire::content::ResourceContents};

#[resource]
async fn without() -> ResourceContents {
    ResourceContents::text("a://b", "")
}

#[resource(name = "report")]
async fn only_named() -> ResourceContents {
    ResourceContents::text("a://b", "")
}

#[resource("reports")]
async fn no_scheme() -> ResourceContents {
    ResourceContents::text("a://b", "")
}

fn main() {}
