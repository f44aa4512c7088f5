use antiphon::{server::Ctx, tool};

#[tool]
async fn owned(ctx: Ctx) -> String {
    ctx.leg().to_string()
}

#[tool]
async fn exclusive(ctx: &mut Ctx) -> String {
    ctx.leg().to_string()
}

#[tool]
async fn twice_lent(ctx: &&Ctx) -> String {
    ctx.leg().to_string()
}

fn main() {}
