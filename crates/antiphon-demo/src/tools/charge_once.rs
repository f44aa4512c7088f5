//! `charge_once`: an effect that happens once, although the handler runs several times.

use crate::backend::{Backend, Operation};
use antiphon::{
    Error, Form, Result,
    server::{Answer, Ctx, State, steps::Attempt},
    tool,
};
use serde::Deserialize;

#[derive(Deserialize, Form)]
struct Confirm {
    /// Charge it?
    ok: bool,
}

#[derive(Deserialize, Form)]
struct Receipt {
    #[form(title = "Where to send the receipt", format = "email")]
    email: String,
}

/// Charges a card that is on file, once, and sends the receipt.
#[tool(needs(form))]
pub(crate) async fn charge_once(
    ctx: &Ctx,
    /// The amount in euros.
    #[arg(min = 1, max = 1000)]
    amount: u32,
    State(backend): State<Backend>,
) -> Result<String> {
    let confirm: Confirm = ctx.elicit(format!("Charge {amount} EUR to the card on file?")).await?;
    if !confirm.ok {
        return Err(Error::user_facing("Nothing was charged."));
    }
    // For the answer to the next question, the handler runs again from its top, and the step's recorded result is reused.
    // If a client sends the same request twice, the step runs twice with one idempotency key, and the provider charges
    // once.
    let charge = async |s: Attempt| backend.send(Operation::Charge { amount, key: s.key().to_owned() }).await;
    ctx.step::<String, _, _>("charge", charge).await?;
    let sent = match ctx.elicit::<Receipt>("Where should the receipt go?").outcome().await? {
        Answer::Accept(Receipt { email }) => format!(" The receipt goes to {email}."),
        Answer::Decline | Answer::Cancel => String::new(),
    };
    Ok(format!("Charged {amount} EUR.{sent}"))
}
