use antiphon::tool;

#[tool(answer_timeout = "3 days")]
async fn spelled() {}

#[tool(answer_timeout = "3")]
async fn unitless() {}

#[tool(answer_timeout = "0h")]
async fn none() {}

#[tool(answer_timeout = 3)]
async fn number() {}

#[tool(answer_timeout = "99999999999999999999w")]
async fn long() {}

#[tool(timeout = "30 seconds")]
async fn worded() {}

#[tool(timeout = "30sec")]
async fn longer_unit() {}

#[tool(time_out = "30s")]
async fn misspelt() {}

fn main() {}
