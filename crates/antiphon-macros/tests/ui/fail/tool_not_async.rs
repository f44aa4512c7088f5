use antiphon::{
    Form,
    server::{Ctx, Server},
    tool,
};

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[tool]
fn provision(ctx: &Ctx) -> antiphon::Result<String> {
    let Region { region } = ctx.elicit("Where?").await?;
    Ok(region)
}

fn main() {
    let _ = Server::builder("s", "1").tool(provision);
}
