use antiphon::tool;

#[tool]
async fn provision(
    #[arg(min = 3, max = 2)] count: u8,
    #[arg(min = 0.75, max = 0.5)] share: f64,
    #[arg(min_length = 3, max_length = 2)] name: String,
    #[arg(min_items = 3, max_items = 2)] tags: Vec<String>,
) -> String {
    format!("{count} {share} {name} {tags:?}")
}

fn main() {}
