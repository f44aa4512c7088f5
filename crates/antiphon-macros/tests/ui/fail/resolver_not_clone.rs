//! By value, several may take it: what cannot be copied is lent.
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
