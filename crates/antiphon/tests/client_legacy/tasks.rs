//! Tasks are an extension of 2026-07-28: on a session there are none.

use crate::scripted_server::{Peer, builder, result};
use antiphon::{
    client::{ClientErrorKind, calls::RequestFault},
    wire::SubscriptionFilter,
};
use serde_json::json;

#[tokio::test]
async fn a_session_has_no_tasks() {
    let (client, mut peer) = Peer::of(builder());
    let server = tokio::spawn(async move {
        let initialize = peer.handshake("2025-11-25").await;
        assert_eq!(initialize["capabilities"], json!({}));
        let call = peer.receive_of("tools/call").await;
        assert!(call["params"].get("_meta").is_none(), "{call}");
        let task = json!({"resultType": "task", "taskId": "t-1", "status": "working", "ttlMs": null});
        peer.send(result(&call["id"], task)).await;
        // Nothing else is sent.
        assert_eq!(peer.receive().await, None);
    });
    let error = client.call_tool("slow", ()).await.unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Request(RequestFault::Task { id: Some(id) }) if id == "t-1"),
        "{error}"
    );
    assert!(error.is_task() && error.task().is_none());
    let mut task = client.attach("t-1");
    for error in
        [task.get().await.unwrap_err(), task.cancel().await.unwrap_err(), task.wait().await.unwrap_err()]
    {
        assert!(matches!(error.kind(), ClientErrorKind::Request(RequestFault::TaskOnSession)), "{error}");
    }
    let mut changes = client.listen(SubscriptionFilter::new().task("t-1"));
    let error = changes.next().await.unwrap().unwrap_err();
    assert!(error.is_nothing_acknowledged(), "{error}");
    client.close().await;
    server.await.unwrap();
}
