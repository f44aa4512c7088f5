//! `load_shedding`: a long computation that can move to another server at each checkpoint.

use crate::backend::{Backend, Operation};
use antiphon::{
    Result,
    server::{Ctx, State},
    tool,
};

/// Counts primes, a thousand numbers at a time.
#[tool]
pub(crate) async fn load_shedding(
    ctx: &Ctx,
    /// The number of thousands.
    #[arg(min = 1, max = 10)]
    portions: u32,
    State(backend): State<Backend>,
) -> Result<String> {
    let mut primes = 0;
    for portion in 0..portions {
        let number = u64::from(portion);
        let key = ("portion", number);
        primes += ctx
            .step(key, async |s| {
                backend.send::<u64>(Operation::Compute { portion, key: s.key().to_owned() }).await
            })
            .await?;
        ctx.report_progress(f64::from(portion + 1), Some(f64::from(portions)), None);
        // While this server drains, the request ends here with the results so far. The client sends the request again,
        // and another server continues with the next portion.
        ctx.checkpoint().nth(number).await;
    }
    Ok(format!("There are {primes} primes below {}.", portions * 1000))
}
