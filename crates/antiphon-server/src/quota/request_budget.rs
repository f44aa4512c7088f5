//! The budget of a server for the bytes of its requests: those that arrive, and those that wait for their reply.

use crate::{
    identity::{
        account::{Account, Accounts},
        caller::{Caller, Identity},
    },
    options::limits::Limits,
    quota::{Exceeded, Quota, QuotaLimits, QuotaPermit},
};
use std::{fmt, sync::Arc};

/// The length up to which a request is not counted. Nearly every request is shorter, and takes no lock.
pub(crate) const UNCOUNTED: usize = 8 * 1024;

/// The budget of a server for the bytes of requests in memory: [`Limits::request_bytes`]. Clones are the same budget.
///
/// A transport reserves bytes of it while it reads a request, and releases them with the text of the request. Without a
/// rest, HTTP answers 503 with `Retry-After`, and the other transports answer with the error `busy`: nothing has run then.
#[derive(Clone)]
pub struct RequestBudget(Arc<Shared>);

struct Shared {
    quota: Arc<Quota>,
    limits: QuotaLimits,
    #[cfg(feature = "http2")]
    all_limits: Limits,
    identity: Identity,
    accounts: Accounts,
}

impl Default for RequestBudget {
    /// Returns a budget with the default limits. Callers are identified by the principal in the extensions of a request.
    fn default() -> Self {
        Self::new(&Limits::default(), Identity::default(), Accounts::default())
    }
}

impl RequestBudget {
    pub(crate) fn new(limits: &Limits, identity: Identity, accounts: Accounts) -> Self {
        let each = limits.request_bytes_per_caller;
        Self(Arc::new(Shared {
            quota: Arc::default(),
            limits: QuotaLimits::new(limits, limits.request_bytes, each, each),
            #[cfg(feature = "http2")]
            all_limits: limits.clone(),
            identity,
            accounts,
        }))
    }

    /// Returns the number of bytes that are reserved.
    pub(crate) fn in_use(&self) -> usize {
        self.0.quota.in_use()
    }

    /// Returns the account of this caller. A caller who cannot be identified is refused later, and counts as anonymous
    /// here.
    pub(crate) fn account(&self, caller: &Caller<'_>) -> Account {
        let principal = self.0.identity.of(caller).ok().flatten();
        self.0.accounts.of(caller, principal.as_ref())
    }

    /// Returns the limits of a quota of `all`, of which anonymous callers leave the same share.
    #[cfg(feature = "http2")]
    pub(crate) fn limits_of(&self, all: usize, each_principal: usize, each_address: usize) -> QuotaLimits {
        QuotaLimits::new(&self.0.all_limits, all, each_principal, each_address)
    }

    /// Reserves `bytes` of this account for one message to the caller, who may always have one.
    ///
    /// # Errors
    /// If the budget is exhausted.
    pub(crate) fn reserve_message(
        &self,
        account: Account,
        bytes: usize,
    ) -> Result<RequestBytes, BudgetExhausted> {
        if bytes <= UNCOUNTED {
            return Ok(RequestBytes::default());
        }
        let Shared { quota, limits, .. } = &*self.0;
        // One that is longer than the whole budget leaves alone.
        let most = if account.is_anonymous() { limits.anonymous } else { limits.all };
        let (bytes, limits) = (bytes.min(most), limits.for_one_of(bytes));
        let mut permit = quota.nothing(account);
        let grown = permit.grow(bytes, &limits);
        grown.map(|()| RequestBytes(Some(permit))).map_err(|full| {
            let (limit, all) = (full.limit, full.all);
            tracing::debug!(?limit, all, bytes, "too many bytes of requests and messages: a message waits");
            BudgetExhausted
        })
    }

    /// Reserves `bytes` of this caller for a request, which may have reserved some already. `largest` is the maximum
    /// length of one message: a caller without other requests may always send one.
    ///
    /// # Errors
    /// If the budget is exhausted. The reservation is as before.
    pub(crate) fn reserve(
        &self,
        reserved: &mut RequestBytes,
        bytes: usize,
        largest: usize,
        caller: &Caller<'_>,
    ) -> Result<(), BudgetExhausted> {
        if bytes <= UNCOUNTED {
            return Ok(());
        }
        let Shared { quota, limits, .. } = &*self.0;
        let limits = limits.for_one_of(largest);
        let permit = reserved.0.get_or_insert_with(|| quota.nothing(self.account(caller)));
        let more = bytes.saturating_sub(permit.amount());
        permit.grow(more, &limits).map_err(|full| {
            let (limit, all, theirs) = (full.limit, full.all, full.theirs);
            match limit {
                Exceeded::Account => {
                    tracing::debug!(theirs, bytes, "too many bytes of one caller: a request was refused")
                }
                Exceeded::All | Exceeded::Anonymous => {
                    tracing::warn!(?limit, all, bytes, "too many bytes of requests: one was refused");
                }
            }
            BudgetExhausted
        })
    }
}

impl fmt::Debug for RequestBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBudget").field("in_use", &self.in_use()).finish_non_exhaustive()
    }
}

/// The error of an exhausted budget.
#[derive(Debug)]
pub(crate) struct BudgetExhausted;

/// The reserved bytes of one request, released when they are dropped.
#[derive(Debug, Default)]
pub(crate) struct RequestBytes(Option<QuotaPermit>);

impl RequestBytes {
    /// Returns the number of bytes that this request may have in memory.
    #[cfg(feature = "http")]
    pub(crate) fn allowed(&self) -> usize {
        self.0.as_ref().map_or(UNCOUNTED, QuotaPermit::amount)
    }

    /// Releases what exceeds this length, which the request has.
    #[cfg(feature = "http")]
    pub(crate) fn settle(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.0 {
            permit.shrink(bytes);
        }
    }
}
