//! The raw operations of a leg, on a row of their own, with values of the same lengths.

use crate::{
    counted::Sizes,
    level::{Level, Result},
};
use antiphon::store::{
    CallStore,
    calls::{CallKey, Claim, ClaimRequest, Fingerprint, Owner, RunnerId, StepRecord},
};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next row.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Does what a leg does with its store: a claim, with `write_ahead` the load of the records and those of one step, and
/// the outcome.
pub(crate) async fn leg(store: &dyn CallStore, level: Level, sizes: &Sizes) -> Result<()> {
    let call = CallKey::from_bytes(row());
    let owner = Owner::from_bytes([2; 16]);
    let (fingerprint, runner) = (Fingerprint::from_bytes([1; 16]), RunnerId::from_bytes(row()));
    let request =
        ClaimRequest::new(call, 2, fingerprint, runner, owner).take_over(level == Level::WriteAhead);
    let Claim::Fresh(fence) = store.claim(&request).await? else { return Err("a new row is claimed".into()) };
    if level == Level::WriteAhead {
        store.load(call).await?;
    }
    if let [start, end] = sizes.records[..] {
        store.append(&fence, &StepRecord::started("create", 1).with_value(vec![7; start])).await?;
        store.append(&fence, &StepRecord::ended("create", vec![7; end])).await?;
    }
    Ok(store.commit(&fence, &vec![7; sizes.outcome]).await?)
}

/// Returns a number that no other row has: another run of the program has other ones.
fn row() -> [u8; 16] {
    let run = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
    let mut row = [0; 16];
    row[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    row[8..].copy_from_slice(&run.to_be_bytes());
    row
}
