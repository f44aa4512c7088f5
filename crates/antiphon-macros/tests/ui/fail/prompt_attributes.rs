use antiphon::prompt;

#[prompt(read_only)]
async fn review() -> String {
    String::new()
}

#[prompt]
async fn bounded(#[arg(min_length = 2)] language: String) -> String {
    language
}

#[prompt]
async fn number() -> u8 {
    1
}

#[prompt]
fn waits_not() -> String {
    String::new()
}

fn main() {}
