use antiphon::tool;

#[tool(answer_within = "3 days")]
async fn spelled() {}

#[tool(answer_within = "3")]
async fn unitless() {}

#[tool(answer_within = "0h")]
async fn none() {}

#[tool(answer_within = 3)]
async fn number() {}

#[tool(answer_within = "99999999999999999999w")]
async fn long() {}

fn main() {}
