use antiphon::tool;
use std::rc::Rc;

#[tool]
async fn provision(name: String) -> String {
    let shared = Rc::new(name);
    std::future::ready(()).await;
    shared.to_string()
}

fn main() {}
