use antiphon::tool;

#[tool]
async fn provision(
    #[arg(min = 1)] name: String,
    #[arg(min_length = 1)] count: u8,
    #[arg(max = 1)] really: bool,
    #[arg(max_length = 1)] tags: Option<Vec<String>>,
    #[arg(min = 0.5)] whole: u8,
    #[arg(max = 256)] small: u8,
) -> String {
    format!("{name} {count} {really} {tags:?} {whole} {small}")
}

fn main() {}
