//! The contract of engines, on two instances.

use crate::{LIMIT, connect, postgres_server::Server};
use antiphon_dbos::DbosOptions;
use antiphon_store::{StoreReach, TaskEngine as _, contract::check_task_engine};
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn two_instances_fulfil_the_contract() {
    let server = Server::start("dbos-contract");
    let (first, second) =
        (connect(&server, DbosOptions::default()).await, connect(&server, DbosOptions::default()).await);
    assert_eq!(first.reach(), StoreReach::Fleet);
    timeout(LIMIT, check_task_engine(first, second.clone())).await.unwrap();
    second.drain();
    timeout(LIMIT, second.idle()).await.unwrap();
}
