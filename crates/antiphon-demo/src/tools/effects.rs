//! Tools with an effect: after a resolver has asked, and behind a web page.

use crate::backend::{Backend, Operation, PAYMENT_ASK_KEY};
use antiphon::{
    Error, Form, Result, resolver,
    server::{Answer, Ctx, State},
    tool,
};
use serde::Deserialize;

#[derive(Clone, Deserialize, Form)]
pub(crate) struct Confirm {
    /// Delete it?
    ok: bool,
}

/// Deletes a folder. Asks first if the folder has files.
#[tool(destructive)]
pub(crate) async fn delete_folder(
    ctx: &Ctx,
    /// The folder, such as `reports`.
    path: String,
    // Not an argument of the tool: the resolver below provides the value.
    #[resolve(confirm_delete)] confirm: Answer<Confirm>,
    State(backend): State<Backend>,
) -> Result<String> {
    Ok(match confirm {
        Answer::Accept(Confirm { ok: true }) => {
            let delete = async |_| backend.send::<bool>(Operation::Delete { path: path.clone() }).await;
            ctx.step("delete", delete).await?;
            format!("Deleted {path}.")
        }
        Answer::Accept(Confirm { ok: false }) => format!("Kept {path}."),
        Answer::Decline => format!("Kept {path}: the question was declined."),
        Answer::Cancel => format!("Kept {path}: the question was cancelled."),
    })
}

/// Lists the folder on every leg of the call. If the files have changed, the question has changed, and the client is
/// asked again.
#[resolver]
async fn confirm_delete(ctx: &Ctx, path: &str, State(backend): State<Backend>) -> Result<Answer<Confirm>> {
    let files: Option<Vec<String>> = backend.send(Operation::List { path: path.to_owned() }).await?;
    let files = files.ok_or_else(|| Error::user_facing(format!("There is no folder {path}.")))?;
    if files.is_empty() {
        return Ok(Answer::Accept(Confirm { ok: true }));
    }
    let question = format!("{path} holds {}. Delete it all?", files.join(" and "));
    Ok(ctx.elicit(question).outcome().await?)
}

// `pay_deposit`: the tool sends the person to a web page, because the model must not see the payment. `deposit_status`
// reports the payment.
//
// `backend/service.rs` is the page. The checks of the page are as necessary as those of the tool.

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
