use antiphon::{prompt, resource, server::Server, tool, wire::content::ResourceContents};

#[tool]
async fn provision() -> String {
    String::new()
}

#[prompt]
async fn review() -> String {
    String::new()
}

#[resource("config://app")]
async fn config() -> ResourceContents {
    ResourceContents::text("config://app", "")
}

fn main() {
    let _ = Server::builder("s", "1").tool(provision()).prompt(review()).resource(config());
    let _ = Server::builder("s", "1").tool(config).prompt(provision).resource(review);
}
