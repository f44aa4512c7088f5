//! The quotas of a server, which limit all callers together and each of them.

use crate::{
    identity::{
        Caller, Identity,
        account::{Account, Accounts},
    },
    options::limits::Limits,
};
use antiphon_wire::lock::Lock;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, MutexGuard},
};

/// The amounts in use.
#[derive(Debug, Default)]
pub(crate) struct Quota(Lock<Usage>);

#[derive(Debug, Default)]
struct Usage {
    all: usize,
    anonymous: usize,
    /// The use of each account with a limit of its own.
    by_account: HashMap<Account, usize>,
}

/// The limits of a quota.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotaLimits {
    pub(crate) all: usize,
    /// The limit of all anonymous callers together. The rest is kept for the others.
    pub(crate) anonymous: usize,
    pub(crate) each_principal: usize,
    pub(crate) each_address: usize,
}

impl QuotaLimits {
    /// Returns the limits of a quota of `all`, of which anonymous callers leave a share.
    pub(crate) fn new(limits: &Limits, all: usize, each_principal: usize, each_address: usize) -> Self {
        Self { all, anonymous: limits.for_anonymous(all), each_principal, each_address }
    }

    /// Returns the limits of a caller who may always have one of this size.
    pub(crate) fn for_one_of(self, size: usize) -> Self {
        let (each_principal, each_address) = (self.each_principal.max(size), self.each_address.max(size));
        Self { each_principal, each_address, ..self }
    }

    /// Returns the limit of this account; `None` if it has none of its own.
    fn each(&self, account: Account) -> Option<usize> {
        match account {
            Account::Principal(_) => Some(self.each_principal),
            Account::Address(_) => Some(self.each_address),
            Account::Owner | Account::Anonymous => None,
        }
    }
}

/// A part of a quota, released when it is dropped.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    of: Arc<Quota>,
    account: Account,
    amount: usize,
}

/// The limit that a permit would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// The limit in all.
    All,
    /// The limit of all anonymous callers.
    Anonymous,
    /// The limit of this account.
    Account,
}

/// The error of a full quota: the limit, and the amounts in use, in all and by this account.
#[derive(Debug)]
pub(crate) struct QuotaExceeded {
    pub(crate) limit: Exceeded,
    pub(crate) all: usize,
    pub(crate) theirs: usize,
}

impl Quota {
    /// Takes a permit for one.
    pub(crate) fn take(
        self: &Arc<Self>,
        account: Account,
        limits: &QuotaLimits,
    ) -> Result<QuotaPermit, QuotaExceeded> {
        let mut permit = self.nothing(account);
        permit.grow(1, limits)?;
        Ok(permit)
    }

    /// Returns a permit for nothing, which may grow.
    pub(crate) fn nothing(self: &Arc<Self>, account: Account) -> QuotaPermit {
        QuotaPermit { of: Arc::clone(self), account, amount: 0 }
    }

    /// Returns the amount in use.
    pub(crate) fn in_use(&self) -> usize {
        self.usage().all
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        // Each change is complete before the lock is released.
        self.0.lock()
    }
}

impl Usage {
    fn check(&self, account: Account, more: usize, limits: &QuotaLimits) -> Result<(), QuotaExceeded> {
        let refused = |limit| QuotaExceeded { limit, all: self.all, theirs: self.of(account) };
        self.exceeds(account, more, limits).map_or(Ok(()), |limit| Err(refused(limit)))
    }

    fn add(&mut self, account: Account, more: usize, limits: &QuotaLimits) {
        self.all += more;
        if account.is_anonymous() {
            self.anonymous += more;
        }
        if more > 0 && limits.each(account).is_some() {
            *self.by_account.entry(account).or_default() += more;
        }
    }

    fn remove(&mut self, account: Account, less: usize) {
        self.all -= less;
        if account.is_anonymous() {
            self.anonymous -= less;
        }
        if let Some(theirs) = self.by_account.get_mut(&account) {
            *theirs -= less;
            if *theirs == 0 {
                self.by_account.remove(&account);
            }
        }
    }

    /// Returns the limit that this much more of this account would exceed.
    fn exceeds(&self, account: Account, more: usize, limits: &QuotaLimits) -> Option<Exceeded> {
        let above = |used: usize, limit: usize| used.checked_add(more).is_none_or(|sum| sum > limit);
        if limits.each(account).is_some_and(|each| above(self.of(account), each)) {
            return Some(Exceeded::Account);
        }
        if account.is_anonymous() && above(self.anonymous, limits.anonymous) {
            return Some(Exceeded::Anonymous);
        }
        above(self.all, limits.all).then_some(Exceeded::All)
    }

    fn of(&self, account: Account) -> usize {
        self.by_account.get(&account).copied().unwrap_or_default()
    }
}

impl QuotaPermit {
    /// Returns the amount of this permit.
    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    /// Takes this much more. After an error the permit is as before.
    pub(crate) fn grow(&mut self, more: usize, limits: &QuotaLimits) -> Result<(), QuotaExceeded> {
        let account = self.account;
        let mut usage = self.of.usage();
        usage.check(account, more, limits)?;
        usage.add(account, more, limits);
        drop(usage);
        self.amount += more;
        Ok(())
    }

    /// Moves the permit to another account. After an error the permit is as before.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn assign(&mut self, account: Account, limits: &QuotaLimits) -> Result<(), QuotaExceeded> {
        let mut usage = self.of.usage();
        usage.remove(self.account, self.amount);
        let checked = usage.check(account, self.amount, limits);
        if checked.is_ok() {
            self.account = account;
        }
        usage.add(self.account, self.amount, limits);
        checked
    }

    /// Releases what exceeds this amount.
    pub(crate) fn shrink(&mut self, amount: usize) {
        let less = self.amount.saturating_sub(amount);
        self.amount -= less;
        self.of.usage().remove(self.account, less);
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::PeerAddress;
    use proptest::prelude::*;

    const LIMITS: QuotaLimits = QuotaLimits { all: 100, anonymous: 75, each_principal: 40, each_address: 30 };

    fn accounts() -> [Account; 6] {
        let address = |last| Account::Address(PeerAddress::new([203, 0, 113, last].into()));
        let (anna, bert) = (Account::Principal(1), Account::Principal(2));
        [anna, bert, address(1), address(2), Account::Anonymous, Account::Owner]
    }

    /// One step: a permit of an account begins, or one of the open permits grows, shrinks, moves to another account, or is dropped.
    #[derive(Clone, Debug)]
    enum Step {
        Begin(usize),
        Grow(usize, usize),
        Shrink(usize, usize),
        Assign(usize, usize),
        Drop(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_usize..6).prop_map(Step::Begin),
            (any::<usize>(), prop_oneof![0_usize..40, Just(usize::MAX)])
                .prop_map(|(at, by)| Step::Grow(at, by)),
            (any::<usize>(), 0_usize..40).prop_map(|(at, to)| Step::Shrink(at, to)),
            (any::<usize>(), 0_usize..6).prop_map(|(at, account)| Step::Assign(at, account)),
            any::<usize>().prop_map(Step::Drop),
        ]
    }

    proptest! {
        /// The quota agrees with a plain sum after each step, no limit is ever exceeded, a step is refused only if it would
        /// exceed one, and nothing is left at the end.
        #[test]
        fn permits_sum_up_and_come_back(steps in prop::collection::vec(step(), 1..200)) {
            let (quota, accounts) = (Arc::new(Quota::default()), accounts());
            let mut open: Vec<QuotaPermit> = Vec::new();
            for step in steps {
                match step {
                    Step::Begin(account) => open.push(quota.nothing(accounts[account])),
                    Step::Drop(at) if !open.is_empty() => drop(open.swap_remove(at % open.len())),
                    Step::Grow(at, by) if !open.is_empty() => {
                        let at = at % open.len();
                        let account = open[at].account;
                        let sum = |counts: &dyn Fn(Account) -> bool| -> usize {
                            open.iter().filter(|permit| counts(permit.account)).map(QuotaPermit::amount).sum()
                        };
                        let (all, anonymous) = (sum(&|_| true), sum(&Account::is_anonymous));
                        let theirs = sum(&|other| other == account);
                        let fits = |used: usize, limit: usize| by <= limit - used;
                        let expected = fits(all, LIMITS.all)
                            && (!account.is_anonymous() || fits(anonymous, LIMITS.anonymous))
                            && LIMITS.each(account).is_none_or(|each| fits(theirs, each));
                        prop_assert_eq!(open[at].grow(by, &LIMITS).is_ok(), expected);
                    }
                    Step::Shrink(at, to) if !open.is_empty() => {
                        let at = at % open.len();
                        let expected = open[at].amount().min(to);
                        open[at].shrink(to);
                        prop_assert_eq!(open[at].amount(), expected);
                    }
                    Step::Assign(at, account) if !open.is_empty() => {
                        let (at, account) = (at % open.len(), accounts[account]);
                        let amount = open[at].amount();
                        let others = open.iter().enumerate().filter(|(other, _)| *other != at);
                        let sum = |counts: &dyn Fn(Account) -> bool| -> usize {
                            others.clone().filter(|(_, permit)| counts(permit.account)).map(|(_, permit)| permit.amount()).sum()
                        };
                        let fits = |used: usize, limit: usize| used + amount <= limit;
                        let expected = (!account.is_anonymous() || fits(sum(&Account::is_anonymous), LIMITS.anonymous))
                            && LIMITS.each(account).is_none_or(|each| fits(sum(&|other| other == account), each));
                        prop_assert_eq!(open[at].assign(account, &LIMITS).is_ok(), expected);
                    }
                    Step::Drop(_) | Step::Grow(..) | Step::Shrink(..) | Step::Assign(..) => {}
                }
                prop_assert_eq!(quota.in_use(), open.iter().map(QuotaPermit::amount).sum::<usize>());
            }
            drop(open);
            let usage = quota.usage();
            prop_assert_eq!((usage.all, usage.anonymous, usage.by_account.len()), (0, 0, 0));
        }
    }

    #[test]
    fn a_full_quota_names_its_limit() {
        let quota = Arc::new(Quota::default());
        let [anna, _, one, two, unknown, owner] = accounts();
        let mut held = Vec::new();
        for (account, amount, exceeded) in [
            (one, 30, None),
            (one, 1, Some(Exceeded::Account)),
            (two, 30, None),
            (unknown, 16, Some(Exceeded::Anonymous)),
            (unknown, 15, None),
            (anna, 41, Some(Exceeded::Account)),
            (anna, 25, None),
            (owner, 1, Some(Exceeded::All)),
        ] {
            let mut permit = quota.nothing(account);
            let refused = permit.grow(amount, &LIMITS).err().map(|full| full.limit);
            assert_eq!(refused, exceeded, "{account:?} {amount}");
            held.push(permit);
        }
        drop(held);
        assert_eq!(quota.in_use(), 0);
    }
}
