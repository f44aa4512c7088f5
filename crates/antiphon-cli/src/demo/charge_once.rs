//! `charge_once`: an effect that happens once, however often the handler runs.

use super::World;
use super::world::Deed;
use antiphon::{
    Error, Form, Result,
    server::{Answer, Attempt, Ctx, State},
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
pub(super) async fn charge_once(
    ctx: &Ctx,
    /// In euros.
    #[arg(min = 1, max = 1000)]
    amount: u32,
    State(world): State<World>,
) -> Result<String> {
    let confirm: Confirm = ctx.elicit(format!("Charge {amount} EUR to the card on file?")).await?;
    if !confirm.ok {
        return Err(Error::user_facing("Nothing was charged."));
    }
    // The handler runs again for the answer to the next question: from its top, but the step's result is on record. Should
    // a client send the same request twice, the step runs twice under one key, and the provider charges once.
    let charge = async |s: Attempt| world.send(Deed::Charge { amount, key: s.key().to_owned() }).await;
    ctx.step::<String, _, _>("charge", charge).await?;
    let sent = match ctx.elicit::<Receipt>("Where should the receipt go?").outcome().await? {
        Answer::Accept(Receipt { email }) => format!(" The receipt goes to {email}."),
        Answer::Decline | Answer::Cancel => String::new(),
    };
    Ok(format!("Charged {amount} EUR.{sent}"))
}
