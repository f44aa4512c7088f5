use antiphon::{resource, wire::content::ResourceContents};

#[resource("report://{id")]
async fn open(id: String) -> ResourceContents {
    ResourceContents::text(id, "")
}

#[resource("report://id}")]
async fn closed() -> ResourceContents {
    ResourceContents::text("a://b", "")
}

#[resource("report://{!path}")]
async fn operator(path: String) -> ResourceContents {
    ResourceContents::text(path, "")
}

#[resource("report://{a}{b}")]
async fn beside(a: String, b: String) -> ResourceContents {
    ResourceContents::text(a, b)
}

#[resource("report://{a}/{a}")]
async fn twice(a: String) -> ResourceContents {
    ResourceContents::text(a, "")
}

#[resource("report://{year:4}")]
async fn prefix(year: String) -> ResourceContents {
    ResourceContents::text(year, "")
}

fn main() {}
