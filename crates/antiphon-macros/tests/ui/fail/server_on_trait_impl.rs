use antiphon::server;

struct Files;

#[server]
impl Clone for Files {
    fn clone(&self) -> Self {
        Files
    }
}

#[server]
struct Other;

#[server(name = "files")]
impl Files {
    #[tool]
    async fn read(&self) {}
}

fn main() {}
