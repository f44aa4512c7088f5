use antiphon::{server, wire::content::ResourceContents};

struct Files;

#[server]
impl Files {
    #[tool]
    async fn read(&self) {}

    #[tool(name = "read")]
    async fn write(&self) {}

    #[resource("file:///")]
    async fn root(&self) -> ResourceContents {
        ResourceContents::text("file:///", "")
    }

    #[resource("file:///")]
    async fn again(&self) -> ResourceContents {
        ResourceContents::text("file:///", "")
    }

    #[tool]
    #[prompt]
    async fn both(&self) {}
}

fn main() {}
