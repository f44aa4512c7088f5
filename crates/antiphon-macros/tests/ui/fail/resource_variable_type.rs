use antiphon::{resource, wire::content::ResourceContents};

#[resource("report://{year}/{id}")]
async fn report(year: u16, id: Option<String>) -> ResourceContents {
    ResourceContents::text(format!("{year} {id:?}"), "")
}

#[resource("report://{id}")]
async fn read(#[arg(title = "Id")] id: String) -> ResourceContents {
    ResourceContents::text(id, "")
}

#[resource("report://all")]
async fn text() -> String {
    String::new()
}

#[resource("log://{service}{/path*}{?q}")]
async fn log(service: Vec<String>, path: String, q: Vec<String>) -> ResourceContents {
    ResourceContents::text(format!("{service:?} {path} {q:?}"), "")
}

fn main() {}
