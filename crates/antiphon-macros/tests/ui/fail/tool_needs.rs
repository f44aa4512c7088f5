use antiphon::tool;

#[tool(needs(forms))]
async fn plural() {}

#[tool(needs)]
async fn nothing() {}

#[tool(needs = "form")]
async fn text() {}

fn main() {}
