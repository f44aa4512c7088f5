use antiphon::tool;

#[tool]
async fn provision(
    #[arg(min = 2, default = 1)] count: u8,
    #[arg(max = 0.5, default = 1)] share: f64,
    #[arg(min_length = 2, default = "x")] name: String,
    #[arg(max_items = 1, default = ["x", "y"])] tags: Vec<String>,
) -> String {
    format!("{count} {share} {name} {tags:?}")
}

fn main() {}
