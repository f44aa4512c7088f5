//! `pay_deposit`: the tool sends the person to a web page, because the model must not see the payment. `deposit_status`
//! reports the payment.
//!
//! `backend/payment_page.rs` is the page. The checks of the page are as necessary as those of the tool.

use crate::backend::{Backend, Operation, PAYMENT_ASK_KEY};
use antiphon::{
    Result,
    server::{Answer, Ctx, State},
    tool,
};

/// Sends the person to a page where they pay the deposit for a booking.
#[tool(needs(url))]
pub(crate) async fn pay_deposit(
    ctx: &Ctx,
    /// The number of the booking.
    booking_id: u64,
    State(backend): State<Backend>,
) -> Result<String> {
    let page = backend.payment_page(&ctx.server()).await?;
    // The sealed reference identifies the question, the call and the person. The rest of a URL cannot be trusted, so the
    // booking is part of the question's key.
    let ask = ctx.elicit_url("Please pay the deposit.", |reference| format!("{page}{reference}"));
    Ok(match ask.key(PAYMENT_ASK_KEY).nth(booking_id).outcome().await? {
        // The person agreed to open the page. The tool does not know yet if the person pays.
        Answer::Accept(()) => "Complete the payment in your browser.".into(),
        Answer::Decline => "No deposit: the question was declined.".into(),
        Answer::Cancel => "No deposit: the question was cancelled.".into(),
    })
}

/// Says whether the deposit for a booking has been paid.
#[tool(read_only)]
pub(crate) async fn deposit_status(
    /// The number of the booking.
    booking_id: u64,
    State(backend): State<Backend>,
) -> Result<String> {
    let paid: Option<String> = backend.send(Operation::Deposit { booking_id }).await?;
    Ok(match paid {
        Some(user) => format!("The deposit for booking {booking_id} was paid by {user}."),
        None => format!("The deposit for booking {booking_id} has not been paid."),
    })
}
