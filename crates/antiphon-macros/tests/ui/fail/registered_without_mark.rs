use antiphon::{
    prompt,
    server::{Ctx, Server},
};

async fn plain(_: &Ctx, name: String) -> String {
    name
}

#[prompt]
async fn review() -> String {
    String::new()
}

struct Files;

fn main() {
    let _ = Server::builder("s", "1").tool(plain);
    let _ = Server::builder("s", "1").tool(review);
    let _ = Server::builder("s", "1").with(Files);
    let _ = Server::builder("s", "1").resource("file:///");
}
