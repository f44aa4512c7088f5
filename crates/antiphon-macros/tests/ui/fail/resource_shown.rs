//! Annotations, the size and the caching of resources.

use antiphon::{resource, wire::content::ResourceContents};

#[resource("menu://{day}", size = 3)]
async fn sized(day: String) -> ResourceContents {
    ResourceContents::text(day, "")
}

#[resource("menu://one", audience(model))]
async fn audience() -> ResourceContents {
    ResourceContents::text("menu://one", "")
}

#[resource("menu://two", priority = 2)]
async fn priority() -> ResourceContents {
    ResourceContents::text("menu://two", "")
}

#[resource("menu://three", cache = "5m")]
async fn cache() -> ResourceContents {
    ResourceContents::text("menu://three", "")
}

#[resource("menu://four", last_modified = 2026)]
async fn modified() -> ResourceContents {
    ResourceContents::text("menu://four", "")
}

fn main() {}
