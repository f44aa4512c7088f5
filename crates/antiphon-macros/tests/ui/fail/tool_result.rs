use antiphon::{server::Json, tool};

struct Report;

#[tool]
async fn number() -> u8 {
    1
}

#[tool]
async fn own() -> Report {
    Report
}

#[tool]
async fn unwritten() -> Json<Report> {
    Json(Report)
}

#[tool]
async fn mute() -> Result<String, Report> {
    Err(Report)
}

fn main() {}
