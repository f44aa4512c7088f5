use antiphon::tool;

#[tool]
struct Provision;

#[tool]
impl Provision {}

fn main() {}
