//! `pay_deposit`: a person is sent to a page, since what they do there is not for the model. `deposit_status` learns of it.
//!
//! The page stands in `world/page.rs`: what it must check is as much a part of this as the tool is.

use super::World;
use super::world::{Deed, PAGE_KEY};
use antiphon::{
    Result,
    server::{Answer, Ctx, State},
    tool,
};

/// Sends the person to a page where they pay the deposit for a booking.
#[tool(needs(url))]
pub(super) async fn pay_deposit(
    ctx: &Ctx,
    /// The number of the booking.
    booking_id: u64,
    State(world): State<World>,
) -> Result<String> {
    let page = world.page(&ctx.server()).await?;
    // The reference says to the page which question of which call this is, and whom it was put to. Nothing else in a URL
    // can be trusted, so the booking is a part of the question's key.
    let ask = ctx.elicit_url("Please pay the deposit.", |reference| format!("{page}{reference}"));
    Ok(match ask.key(PAGE_KEY).nth(booking_id).outcome().await? {
        // They have agreed to open it. That is all that is known here.
        Answer::Accept(()) => "Complete the payment in your browser.".into(),
        Answer::Decline => "No deposit: the question was declined.".into(),
        Answer::Cancel => "No deposit: the question was cancelled.".into(),
    })
}

/// Says whether the deposit for a booking has been paid.
#[tool(read_only)]
pub(super) async fn deposit_status(
    /// The number of the booking.
    booking_id: u64,
    State(world): State<World>,
) -> Result<String> {
    let paid: Option<String> = world.send(Deed::Deposit { booking_id }).await?;
    Ok(match paid {
        Some(who) => format!("The deposit for booking {booking_id} was paid by {who}."),
        None => format!("The deposit for booking {booking_id} has not been paid."),
    })
}
