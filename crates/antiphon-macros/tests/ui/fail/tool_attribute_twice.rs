use antiphon::tool;

#[tool(title = "A", title = "B")]
async fn provision() {}

#[tool]
async fn find(
    #[arg(min = 1)]
    #[arg(min = 2)]
    count: u8,
) -> String {
    count.to_string()
}

fn main() {}
