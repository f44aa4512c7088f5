use antiphon::prompt;

#[prompt]
async fn review(count: u8, tags: Vec<String>, language: String) -> String {
    format!("{count} {tags:?} {language}")
}

fn main() {}
