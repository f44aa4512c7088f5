//! `book_table`: a tool that asks only when the date is full, and repeats the question until a date is free.

use antiphon::{
    Form, Result,
    server::{Answer, Ctx},
    tool,
};
use serde::Deserialize;

/// The dates without a free table.
const FULL: [&str; 2] = ["2025-12-25", "2025-12-31"];

#[derive(Deserialize, Form)]
struct AlternativeDate {
    /// Try another date?
    #[form(title = "Accept Alternative")]
    accept_alternative: bool,
    /// Alternative date (YYYY-MM-DD)
    #[form(title = "Date", format = "date", default = "2025-12-26")]
    date: String,
}

/// Books a table; asks for another date when all are taken.
#[tool]
pub(crate) async fn book_table(
    ctx: &Ctx,
    /// The day, as in 2025-12-24.
    mut date: String,
    /// The number of people.
    #[arg(min = 1, max = 20)]
    party_size: u8,
) -> Result<String> {
    // The alternative date can be full too.
    let mut asked = 0;
    while FULL.contains(&date.as_str()) {
        let question = format!("No tables for {party_size} on {date}. Would you like to try another date?");
        let ask = ctx.elicit::<AlternativeDate>(question);
        // A call uses each key once: the second question is `alternative_date#1`.
        let ask = if asked == 0 { ask } else { ask.nth(asked) };
        match ask.outcome().await? {
            Answer::Accept(answer) if answer.accept_alternative => date = answer.date,
            Answer::Accept(_) | Answer::Decline | Answer::Cancel => return Ok("No booking made.".into()),
        }
        asked += 1;
    }
    Ok(format!("Booked a table for {party_size} on {date}."))
}
