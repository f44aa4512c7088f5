use antiphon::tool;

#[tool]
fn provision(name: String) -> String {
    name
}

fn main() {}
