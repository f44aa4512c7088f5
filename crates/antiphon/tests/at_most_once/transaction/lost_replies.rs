//! A commit that is not confirmed, and every operation of the store in turn: the effect is there exactly once.

use super::{database::Sqlite, script::Script, *};
use antiphon::{
    server::StepError,
    store::{
        SqliteStore, StoreError, StoreErrorKind, StoreFuture, StoreIdentity, Transact, TransactionStore,
        calls::{
            Appended, BlobDigest, CallKey, Claim, ClaimRequest, Conclusion, Fence, Owner, StepRecord,
            StoreReach, Swept, Transacted, Written,
        },
    },
};
use std::sync::Mutex;

/// A store whose next transaction fails in a given way.
#[derive(Clone, Debug)]
struct FaultyTransactions {
    store: SqliteStore,
    calls: Arc<FaultyStore>,
    next: Arc<Mutex<Option<StoreFault>>>,
    /// True if the store is down after that.
    then_down: bool,
}

impl CallStore for FaultyTransactions {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.calls.claim(request)
    }
    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.calls.renew(fence, lease)
    }
    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.calls.append(fence, record)
    }
    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        self.calls.commit(fence, outcome)
    }
    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.calls.release(fence)
    }
    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.calls.load(call)
    }
    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.calls.put(blob, keep, owner)
    }
    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.calls.get(digest)
    }
    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.calls.sweep(limit)
    }
    fn reach(&self) -> StoreReach {
        self.calls.reach()
    }
    fn identity(&self) -> Option<StoreIdentity> {
        self.store.identity()
    }
}

impl TransactionStore for FaultyTransactions {
    type Transaction<'t> = <SqliteStore as TransactionStore>::Transaction<'t>;

    fn is_temporary(error: &(dyn std::error::Error + 'static)) -> bool {
        SqliteStore::is_temporary(error)
    }
}

impl<F: Send, R: Send> Transact<F, R> for FaultyTransactions
where
    SqliteStore: Transact<F, R>,
{
    type Output = <SqliteStore as Transact<F, R>>::Output;

    fn transact<'a, X, C>(&'a self, fence: &'a Fence, body: F, conclude: C) -> StoreFuture<'a, Transacted<X>>
    where
        F: 'a,
        R: 'a,
        X: Send + 'static,
        C: FnOnce(Self::Output) -> Conclusion<X> + Send + 'static,
    {
        let fault = self.next.lock().unwrap().take();
        let fail = |kind, written| Err(StoreError::new(kind, written, "transaction", "a fault on purpose"));
        Box::pin(async move {
            if fault.is_some() && self.then_down {
                self.calls.set_down(Some(StoreFault::Refused));
            }
            match fault {
                None => self.store.transact(fence, body, conclude).await,
                Some(StoreFault::Refused) => fail(StoreErrorKind::Unreachable, Written::No),
                Some(StoreFault::LostReply) => {
                    self.store.transact(fence, body, conclude).await?;
                    fail(StoreErrorKind::Timeout, Written::Unknown)
                }
                Some(_lost_request) => fail(StoreErrorKind::Timeout, Written::Unknown),
            }
        })
    }
}

/// Orders in a transaction of a store with faults.
fn order<'a>(
    ctx: &'a Ctx,
    store: &'a FaultyTransactions,
    script: &Arc<Script>,
) -> BoxFuture<'a, Result<String, StepError>> {
    let script = Arc::clone(script);
    ctx.in_transaction("order", store, move |tx| {
        tx.execute("INSERT INTO orders (item) VALUES ('mug')", [])?;
        script.end()
    })
    .boxed()
}

/// A server whose next transaction has this fault.
async fn server(
    database: &Sqlite,
    fault: StoreFault,
    then_down: bool,
) -> (Server, Arc<FaultyStore>, Arc<Script>) {
    let (store, script) = (database.open().await, Arc::new(Script::default()));
    let calls = Arc::new(FaultyStore::new(Arc::new(store.clone())));
    let next = Arc::new(Mutex::new(Some(fault)));
    let store = FaultyTransactions { store, calls: Arc::clone(&calls), next, then_down };
    let handler = {
        let (store, script) = (store.clone(), Arc::clone(&script));
        tool(move |ctx| {
            let (store, script) = (store.clone(), Arc::clone(&script));
            async move { Ok(order(ctx, &store, &script).await?) }.boxed()
        })
    };
    let store: Arc<dyn CallStore> = Arc::new(store);
    (write_ahead(handler, &store), calls, script)
}

#[tokio::test]
async fn a_commit_without_a_confirmation_is_looked_up() {
    for fault in StoreFault::ALL {
        let database = Sqlite::new();
        let (server, _, script) = server(&database, fault, false).await;
        let call = begun(&server).await;
        let reply = deliver(&call, &server, Value::Null).await;
        if fault == StoreFault::LostReply {
            assert_eq!(result_text(&reply), "order 1", "{fault:?}: {reply}");
        } else {
            assert_eq!(reason(&reply), "store", "{fault:?}: {reply}");
            assert_eq!((database.orders().await, script.runs()), (0, 0), "{fault:?}");
        }
        // Nothing is in the way of the next request.
        let reply = deliver(&call, &server, Value::Null).await;
        assert_eq!(result_text(&reply), "order 1", "{fault:?}: {reply}");
        assert_eq!((database.orders().await, script.runs()), (1, 1), "{fault:?}");
    }
}

/// The store is down after the fault, so the run cannot find out. The next one does.
#[tokio::test]
async fn a_commit_that_cannot_be_looked_up_is_left_to_the_next_request() {
    for fault in StoreFault::ALL {
        let database = Sqlite::new();
        let (server, calls, script) = server(&database, fault, true).await;
        let call = begun(&server).await;
        let reply = deliver(&call, &server, Value::Null).await;
        assert_eq!(reason(&reply), "store", "{fault:?}: {reply}");
        calls.set_down(None);
        database.hand().advance(Duration::from_secs(31));
        let reply = deliver(&call, &server, Value::Null).await;
        assert_eq!(result_text(&reply), "order 1", "{fault:?}: {reply}");
        assert_eq!((database.orders().await, script.runs()), (1, 1), "{fault:?}");
    }
}

/// Fails each operation of a leg in turn, before and after it took effect. The client repeats its request until it has the
/// result.
#[tokio::test]
async fn whichever_operation_fails_the_effect_is_there_exactly_once() {
    for fault in StoreFault::ALL {
        for operation in 0..8 {
            let (database, script) = (Sqlite::new(), Arc::new(Script::default()));
            let healthy = Instance::new(&database, &script, |builder| builder).await;
            let call = begun(&healthy.server).await;
            let store = database.open().await;
            let faulty = FaultyStore::new(Arc::new(store.clone())).fail(operation, fault);
            let calls: Arc<dyn CallStore> = Arc::new(faulty);
            let server = write_ahead(shop::<Sqlite>(store, &script), &calls);
            let mut replies = Vec::new();
            while !replies.last().is_some_and(|reply: &Value| reply["result"].is_object()) {
                assert!(replies.len() < 4, "{fault:?} of operation {operation}: {replies:?}");
                replies.push(deliver(&call, &server, Value::Null).await);
                database.hand().advance(Duration::from_secs(31));
            }
            let again = deliver(&call, &healthy.server, Value::Null).await;
            assert_eq!(replies.last(), Some(&again), "{fault:?} of operation {operation}");
            assert_eq!(database.orders().await, 1, "{fault:?} of operation {operation}: {replies:?}");
        }
    }
}
