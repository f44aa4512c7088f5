use antiphon::{server::Ctx, tool};

#[tool]
async fn provision(ctx: &Ctx, name: String, other: &Ctx) -> String {
    format!("{} {name} {}", ctx.leg(), other.leg())
}

fn main() {}
