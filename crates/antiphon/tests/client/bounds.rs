//! Ends of a call that the client causes: limits, time, cancellation.

use crate::client_support::{failing::*, *};
use antiphon::client::{Call, CancelToken, ClientBuilder, ClientError, ClientErrorKind, asks::AskFault};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

#[tokio::test(start_paused = true)]
async fn rounds_are_counted_and_state_only_legs_are_not() {
    for (limit, sent) in [(None, 11), (Some(0), 1), (Some(2), 3)] {
        let client = limit.map_or_else(forms, |limit| forms().max_rounds(limit));
        let rounds = sent as u32;
        let error = check(
            client,
            (0..sent).map(|_| one_form()).collect(),
            Expected {
                texts: &["(`max_rounds`)"],
                sent,
                pending: Some((rounds, &[])),
                is: Some(ClientError::is_limit),
            },
        )
        .await;
        assert!(
            matches!(error.kind(), ClientErrorKind::Ask(AskFault::RoundLimit { rounds }) if *rounds as usize == sent - 1)
        );
    }
    // Ten rounds and twenty state-only legs in between.
    let mut replies: Vec<Reply> = (0..10).flat_map(|_| [one_form(), not_yet("a"), not_yet("b")]).collect();
    replies.push(done("ok"));
    let fake = Fake::script(replies);
    let began = Instant::now();
    fake.client(forms()).call_tool("t", ()).await.unwrap();
    assert_eq!((fake.requests().len(), began.elapsed()), (31, Duration::from_millis(10 * (50 + 100))));
}

#[tokio::test(start_paused = true)]
async fn state_only_legs_are_paced_and_end() {
    for (client, sent, waited) in [
        (builder().state_only_limits(60, Duration::from_secs(3600)), 61, 9_350 + 47 * 5_000),
        (builder(), 37, 120_000),
        (builder().state_only_limits(3, Duration::from_secs(120)), 4, 350),
    ] {
        let began = Instant::now();
        let is: fn(&ClientError) -> bool = |error| error.is_limit() && error.pending().unwrap().has_state();
        let replies = (0..sent).map(|_| not_yet(SECRET)).collect();
        let texts = &["(`state_only_limits`)"][..];
        check(client, replies, Expected { texts, sent, pending: Some((0, &[])), is: Some(is) }).await;
        assert_eq!(began.elapsed(), Duration::from_millis(waited));
    }
}

#[tokio::test(start_paused = true)]
async fn time_runs_out_or_the_call_is_cancelled() {
    let hang = || builder().on_elicit_form(async |_| std::future::pending().await);
    let seconds = Duration::from_secs;
    for (client, call, replies, took, texts, pending, cancelled) in [
        (forms(), None, vec![Reply::Hang], 60, "no response within 60s", None, 1),
        (forms().leg_timeout(seconds(5)), None, vec![one_form(), Reply::Hang], 5, "within 5s", Some(1), 1),
        (forms(), Some(seconds(9)), vec![one_form(), Reply::Hang], 9, "did not end within 9s", Some(1), 1),
        (hang().call_timeout(seconds(7)), None, vec![one_form()], 7, "did not end within 7s", Some(1), 0),
    ] {
        let fake = Fake::script(replies);
        let of = Call::tool("provision", ()).unwrap();
        let of = match call {
            Some(limit) => of.call_timeout(limit),
            None => of,
        };
        let began = Instant::now();
        let error = fake.client(client).call(of).await.unwrap_err();
        assert!(error.is_timeout() && chain(&error).contains(texts), "{}", chain(&error));
        assert_eq!(began.elapsed(), seconds(took));
        assert_eq!(error.pending().map(|pending| pending.round()), pending);
        assert_eq!(fake.cancelled(), cancelled);
    }
    // A timeout of the call's own.
    let fake = Fake::script([Reply::Hang]);
    let call = Call::resource("file:///a").leg_timeout(seconds(3));
    let error = fake.client(builder()).call(call).await.unwrap_err();
    assert!(chain(&error).contains("resources/read `file:///a` at fake:server: no response within 3s"));
}

/// Opens callbacks that never end, and tells when one is open.
fn never_ending(open: &Arc<Notify>, dropped: &Arc<AtomicUsize>) -> ClientBuilder {
    let (open, dropped) = (Arc::clone(open), Arc::clone(dropped));
    builder().on_elicit_form(move |_| {
        let (open, guard) = (Arc::clone(&open), Guard(Arc::clone(&dropped)));
        async move {
            let _guard = guard;
            open.notify_one();
            std::future::pending().await
        }
    })
}

#[tokio::test]
async fn cancellation_reaches_open_callbacks_and_requests() {
    let (open, dropped) = (Arc::default(), Arc::default());
    let fake = Fake::script([asking(json!({"a": form(), "b": form()}), Some(SECRET))]);
    let client = fake.client(never_ending(&open, &dropped));
    let token = CancelToken::new();
    let call = Call::tool("t", ()).unwrap().cancelled_by(&token);
    let (result, ()) = tokio::join!(client.call(call.clone()), async {
        open.notified().await;
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        token.cancel();
    });
    let error = result.unwrap_err();
    assert!(error.is_cancelled() && token.is_cancelled());
    assert_eq!(error.into_pending().unwrap().missing(), ["a", "b"]);
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
    // A token that is cancelled already: nothing is sent.
    assert!(client.call(call).await.unwrap_err().is_cancelled());
    assert_eq!(fake.requests().len(), 1);

    // A request under way is cancelled too; so is everything if the future is dropped.
    let fake = Fake::script([Reply::Hang, asking(json!({"a": form()}), None)]);
    let client = fake.client(never_ending(&open, &dropped));
    let token = CancelToken::new();
    let call = Call::tool("t", ()).unwrap().cancelled_by(&token);
    let (result, ()) = tokio::join!(client.call(call), async { token.cancel() });
    assert!(result.unwrap_err().is_cancelled());
    assert_eq!(fake.cancelled(), 1);
    tokio::select! {
        _ = client.call_tool("t", ()) => unreachable!(),
        () = open.notified() => {}
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
}
