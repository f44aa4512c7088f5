//! A resolver must be Send, because calls move between threads.
use antiphon::{Result, resolver};
use std::rc::Rc;

#[resolver]
async fn size() -> Result<u64> {
    let shared = Rc::new(1);
    tokio_like().await;
    Ok(*shared)
}

async fn tokio_like() {}

#[resolver]
async fn gives() -> Result<Rc<u64>> {
    Ok(Rc::new(1))
}

fn main() {}
