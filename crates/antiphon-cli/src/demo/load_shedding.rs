//! `load_shedding`: a long computation that can move to another server on the way.

use super::World;
use super::world::Deed;
use antiphon::{
    Result,
    server::{Ctx, State},
    tool,
};

/// Counts primes, a thousand numbers at a time.
#[tool]
pub(super) async fn load_shedding(
    ctx: &Ctx,
    /// How many thousands.
    #[arg(min = 1, max = 10)]
    portions: u32,
    State(world): State<World>,
) -> Result<String> {
    let mut primes = 0;
    for portion in 0..portions {
        let number = u64::from(portion);
        let key = ("portion", number);
        primes += ctx
            .step(key, async |s| world.send::<u64>(Deed::Compute { portion, key: s.key().to_owned() }).await)
            .await?;
        ctx.report_progress(f64::from(portion + 1), Some(f64::from(portions)), None);
        // While this server drains, the request ends here, with what is computed so far; the client sends it again,
        // and another server goes on with the next portion.
        ctx.checkpoint().nth(number).await;
    }
    Ok(format!("There are {primes} primes below {}.", portions * 1000))
}
