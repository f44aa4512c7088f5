//! A value that is not Clone cannot be taken by value, because several parameters may take it.
use antiphon::{Result, resolver, tool};

struct Plan;

struct Token;

#[resolver]
async fn plan() -> Result<Plan> {
    Ok(Plan)
}

#[resolver]
async fn taken(token: Token) -> Result<u64> {
    drop(token);
    Ok(1)
}

#[tool]
async fn a(#[resolve(plan)] plan: Plan) -> String {
    drop(plan);
    String::new()
}

fn main() {}
