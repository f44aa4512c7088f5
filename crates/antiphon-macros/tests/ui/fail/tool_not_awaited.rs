use antiphon::{Form, server::Ctx, tool};

#[derive(serde::Deserialize, Form)]
struct Region {
    region: String,
}

#[tool]
async fn provision(ctx: &Ctx) -> antiphon::Result<String> {
    let Region { region } = ctx.elicit("Where?")?;
    Ok(region)
}

fn main() {}
