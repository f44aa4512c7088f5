use antiphon::server;
use std::sync::Arc;

struct Files;

#[server]
impl Files {
    #[tool]
    async fn exclusive(&mut self) {}

    #[tool]
    async fn owned(self) {}

    #[tool]
    async fn shared(self: Arc<Self>) {}

    #[tool]
    fn waits_not(&self) {}
}

fn main() {}
