//! The call of a first request that was claimed by its digest. No state has brought it, so its runs find it in the store:
//! their steps have the same idempotency keys.

use crate::{
    at_most_once::{outcome::RowSeal, records::call_name},
    errors::{
        refusal::Refusal,
        store_error::{refused, repeated},
    },
    runtime::Runtime,
};
use antiphon_seal::Call;
use antiphon_store::{Appended, CallStore, Fence, StepRecord};
use antiphon_wire::escaped;

/// Returns the call of this row: the one of an earlier run, or a new one, which is stored.
pub(crate) async fn first_call(
    server: &Runtime,
    store: &dyn CallStore,
    fence: &Fence,
    row: &RowSeal,
) -> Result<Call, Refusal> {
    let (sealer, now) = (server.sealing.sealer(), server.clock.now());
    let unsealed = |cause: &dyn std::fmt::Display| {
        tracing::error!(cause = %escaped(cause), "a call could not be sealed for the store");
        Refusal::Internal
    };
    let call = server.begin_call(now).map_err(|fault| unsealed(&fault))?;
    let sealed = row.seal_call(&sealer, &call, now).map_err(|fault| unsealed(&fault))?;
    let record = StepRecord::ended(call_name(row.leg), sealed);
    match repeated(|| store.append(fence, &record)).await {
        Ok(Appended::First) => Ok(call),
        // The steps of an earlier run are unknown without its call, now and later.
        Ok(Appended::Existing(stored)) => {
            row.open_call(&sealer, &stored, now).ok_or(Refusal::OutcomeUnknown { step: None })
        }
        Err(error) => Err(refused(&error)),
    }
}
