use antiphon::tool;

#[tool]
async fn provision(
    #[arg(default = 1)] name: String,
    #[arg(default = "1")] count: u8,
    #[arg(default = 1.5)] whole: Option<i64>,
    #[arg(default = 300)] small: u8,
    #[arg(default = 1)] really: bool,
    #[arg(default = "x")] share: f64,
    #[arg(default = "x")] tags: Vec<String>,
    #[arg(default = name)] other: String,
) -> String {
    format!("{name} {count} {whole:?} {small} {really} {share} {tags:?} {other}")
}

fn main() {}
