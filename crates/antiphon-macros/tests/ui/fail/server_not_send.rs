use antiphon::server;
use std::rc::Rc;

struct Files;

#[server]
impl Files {
    #[tool]
    async fn read(&self) -> String {
        let shared = Rc::new(1);
        std::future::ready(()).await;
        shared.to_string()
    }
}

fn main() {}
