use antiphon::tool;

struct Files;

impl Files {
    #[tool]
    async fn read(&self, path: String) -> String {
        path
    }
}

fn main() {}
