use antiphon::{
    server::{Ctx, State},
    tool,
};

#[tool]
async fn provision(#[arg(title = "Context")] ctx: &Ctx) -> String {
    ctx.leg().to_string()
}

#[tool]
async fn find(#[arg(title = "Database")] db: State<u8>) -> String {
    db.to_string()
}

fn main() {}
