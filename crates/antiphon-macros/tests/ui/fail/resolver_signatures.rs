//! Invalid signatures and parameters of resolvers.
use antiphon::{Result, resolver, server::{Ctx, State}};

#[resolver]
fn not_async() -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn generic<T: Clone + Send>(value: T) -> Result<T> {
    Ok(value)
}

#[resolver]
async fn of_method(&self) -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn owned_ctx(ctx: Ctx, mutable: &mut Ctx) -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn two(a: &Ctx, b: &Ctx) -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn lent_state(state: &State<u64>) -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn lent_within(path: Option<&str>, any: &impl Clone, (a, b): (u8, u8)) -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn lent_value(path: &str) -> &str {
    path
}

#[resolver]
async fn read(#[arg(title = "Path")] path: &str) -> Result<u64> {
    Ok(1)
}

#[resolver]
async fn changed(#[resolve(read)] value: &mut u64, #[resolve(read)] #[resolve(read)] twice: u64) -> Result<u64> {
    Ok(1)
}

#[resolver]
struct Place;

fn main() {}
