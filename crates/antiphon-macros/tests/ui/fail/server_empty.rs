use antiphon::server;

struct Files;

#[server]
impl Files {
    async fn read(&self) {}
}

fn main() {}
