use antiphon::tool;

#[tool]
async fn provision(name: String) -> String {
    let length: u32 = name;
    length
}

fn main() {}
