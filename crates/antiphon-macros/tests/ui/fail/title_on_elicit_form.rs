use antiphon::{Form, Result, server::Ctx};

#[derive(serde::Deserialize, Form)]
struct Place {
    region: String,
}

async fn order(ctx: &Ctx) -> Result<String> {
    let place: Place = ctx.elicit("Where?").title("Place").await?;
    Ok(place.region)
}

fn main() {}
