//! Receipts of calls, and who may approve: over legs, servers and sessions.

use crate::common::{
    session::{InSession, plain},
    *,
};
use antiphon::{
    Clock, Form, ManualClock, Result,
    seal::{KeyRing, Principal, SecretKey},
    server::{Answer, Ctx, NoArguments, Server, ServerBuilder, Tool, receipts::Receipt},
    store::MemoryStore,
    tool,
};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[derive(serde::Deserialize, Form)]
struct Amount {
    amount: i64,
}

#[derive(serde::Deserialize, Form)]
struct Sure {
    sure: bool,
}

type Receipts = Arc<Mutex<Vec<String>>>;

/// A tool that asks twice and stores a receipt after each answer.
fn pay(receipts: &Receipts) -> Tool {
    let receipts = Arc::clone(receipts);
    tool_of(move |ctx| {
        let receipts = Arc::clone(&receipts);
        Box::pin(async move {
            assert!(ctx.receipt().is_err());
            let amount = ctx.elicit::<Amount>("How much?").key("amount").await?.amount;
            let store = async || {
                receipts.lock().unwrap().push(ctx.receipt()?);
                Ok(())
            };
            ctx.step("first", async |_| store().await).await?;
            let sure = ctx.elicit::<Sure>(format!("Pay {amount}?")).key("sure").outcome().await?;
            ctx.step("second", async |_| store().await).await?;
            Ok(matches!(sure, Answer::Accept(Sure { sure: true })).to_string())
        })
    })
}

fn tool_of<F>(run: F) -> Tool
where
    F: for<'a> Fn(&'a Ctx) -> BoxFuture<'a, Result<String>> + Send + Sync + 'static,
{
    fn typed<F>(run: F) -> F
    where
        F: for<'a> Fn(&'a Ctx, Map<String, Value>) -> BoxFuture<'a, Result<String>> + Send + Sync + 'static,
    {
        run
    }
    Tool::with_schema("pay", json!({"type": "object"}), typed(move |ctx, _| run(ctx)))
}

fn server(tool: Tool, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> (Server, ManualClock) {
    let (clock, hand) = Clock::manual(start());
    let builder = Server::builder("bank", "1").clock(clock).keys(ring(7)).tool(tool);
    (change(builder).build().unwrap(), hand)
}

async fn leg(server: &Server, params: &Value, user: Option<&str>) -> Value {
    send(Over::Http, server, &request(1, "tools/call", params.clone()), user).await.1
}

fn next(params: &Value, reply: &Value, answers: Value) -> Value {
    with(params, json!({"requestState": state_of(reply), "inputResponses": answers}))
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn verified(receipts: &Receipts) -> Vec<Receipt> {
    receipts.lock().unwrap().iter().map(|text| Receipt::verify(text, &ring(7)).unwrap()).collect()
}

#[tokio::test]
async fn a_receipt_has_each_answer_with_its_time() {
    let receipts = Receipts::default();
    // Two servers: each leg runs on the other one.
    let (one, clock) = server(pay(&receipts), |builder| builder.bind_principal(by_header));
    let (two, other_clock) = server(pay(&receipts), |builder| builder.bind_principal(by_header));
    let wait = |seconds| {
        clock.advance(Duration::from_secs(seconds));
        other_clock.advance(Duration::from_secs(seconds));
    };
    let first = json!({"name": "pay", "arguments": {"to": "ada", "why": 1.0}});
    let user = Some("eve@shop");
    let reply = leg(&one, &first, user).await;
    wait(20);
    let reply =
        leg(&two, &next(&first, &reply, json!({"amount": accept(json!({"amount": 30}))})), user).await;
    wait(40);
    let reply = leg(&one, &next(&first, &reply, json!({"sure": {"action": "decline"}})), user).await;
    assert_eq!(reply["result"]["content"][0]["text"], "false", "{reply}");

    let stored = verified(&receipts);
    let [early, late] = &stored[..] else { panic!("{stored:?}") };
    assert_eq!((early.entries.len(), late.entries.len()), (1, 2));
    assert!(late.continues(early) && !early.continues(late) && late.continues(late));
    assert_eq!((early.issued, late.issued), (1_800_000_020, 1_800_000_060));
    let times: Vec<_> = late.entries.iter().map(|entry| entry.at).collect();
    assert_eq!(times, [Some(1_800_000_020), Some(1_800_000_060)]);
    let entry = serde_json::to_value(&late.entries[1]).unwrap();
    assert_eq!(entry["shown"]["params"]["message"], "Pay 30?");
    assert_eq!(entry["answer"], json!({"action": "decline"}));
    let eve = json!({"subject": "eve", "client_id": "shop", "issuer": "https://issuer.example"});
    assert_eq!((&entry["by"], &entry["key"]), (&eve, &json!("sure")));
    let call = serde_json::to_value(&late.call).unwrap();
    assert_eq!(
        (&call["server"], &call["method"], &call["target"], &call["caller"]),
        (&json!("bank"), &json!("tools/call"), &json!("pay"), &eve),
    );
    assert!(late.has_arguments(Some(r#"{"why": 1, "to": "ada"}"#)).unwrap());
    assert!(!late.has_arguments(Some(r#"{"why": 1, "to": "eve"}"#)).unwrap());
    assert!(!late.has_arguments(None).unwrap());
}

#[tokio::test]
async fn a_changed_receipt_and_a_state_are_no_receipts() {
    let receipts = Receipts::default();
    let (server, _) = server(pay(&receipts), |builder| builder);
    let first = json!({"name": "pay", "arguments": {}});
    let reply = leg(&server, &first, None).await;
    let reply =
        leg(&server, &next(&first, &reply, json!({"amount": accept(json!({"amount": 30}))})), None).await;
    let text = receipts.lock().unwrap()[0].clone();
    assert!(verified(&receipts)[0].entries[0].by.is_none());

    let fault = |text: &str, ring: &KeyRing| Receipt::verify(text, ring).unwrap_err().to_string();
    let other = if &text[60..61] == "A" { "B" } else { "A" };
    let changed = format!("{}{other}{}", &text[..60], &text[61..]);
    assert!(fault(&changed, &ring(7)).starts_with("the receipt was changed"));
    assert!(fault(&text, &ring(8)).starts_with("the receipt was sealed under another key"));
    assert!(fault(&state_of(&reply), &ring(7)).starts_with("the text is not a receipt"));
    assert!(fault("", &ring(7)).starts_with("the text is not a receipt"));
    // The other way round: a receipt is not a state.
    let forged = with(&first, json!({"requestState": text, "inputResponses": {}}));
    let reply = leg(&server, &forged, None).await;
    assert_eq!(reply["error"]["data"]["reason"], "invalid_request_state", "{reply}");
    // After a rotation the receipt opens with an old copy of the file.
    let both = KeyRing::new(vec![SecretKey::from_bytes([8; 32]), SecretKey::from_bytes([7; 32])]).unwrap();
    assert!(Receipt::verify(&format!("{text}\n"), &both).is_ok());
}

#[tokio::test]
async fn a_session_has_receipts_too() {
    let receipts = Receipts::default();
    let (server, clock) = server(pay(&receipts), |builder| {
        builder.bind_principal(|_| Ok::<_, String>(Some(Principal::user("ada"))))
    });
    let mut session = InSession::newest(&server).await;
    let ask = session.asks(1, "tools/call", json!({"name": "pay", "arguments": {}})).await;
    clock.advance(Duration::from_secs(30));
    session.answers(&ask, accept(json!({"amount": 5}))).await;
    let ask = session.receive().await;
    clock.advance(Duration::from_secs(50));
    session.answers(&ask, accept(json!({"sure": true}))).await;
    assert_eq!(session.receive().await["result"]["content"][0]["text"], "true");
    let stored = verified(&receipts);
    let times: Vec<_> = stored[1].entries.iter().map(|entry| entry.at).collect();
    assert_eq!(times, [Some(1_800_000_030), Some(1_800_000_080)]);
    assert!(stored[1].continues(&stored[0]));
    assert_eq!(stored[1].entries[0].by.as_ref().unwrap().subject.as_deref(), Some("ada"));
}

fn is_manager(principal: &Principal) -> bool {
    principal.subject() == Some("manager")
}

/// Grants access.
#[tool(approved_by(is_manager))]
async fn grant(ctx: &Ctx) -> Result<String> {
    let sure = ctx.elicit::<Sure>("Grant access?").key("sure").await?.sure;
    let receipt = Receipt::verify(&ctx.receipt()?, &ring(7))?;
    let by = receipt.entries[0].by.as_ref().and_then(|by| by.subject.clone());
    Ok(format!("{sure}, says {}", by.unwrap_or_default()))
}

#[tokio::test]
async fn only_approvers_answer() {
    let (clock, _hand) = Clock::manual(start());
    let server = Server::builder("bank", "1").clock(clock).keys(ring(7)).tool(grant);
    let server = server.bind_principal(by_header).build().unwrap();
    let first = json!({"name": "grant", "arguments": {}});
    let yes = json!({"sure": accept(json!({"sure": true}))});
    for user in [Some("eve@shop"), None] {
        let reply = leg(&server, &first, user).await;
        let retry = next(&first, &reply, yes.clone());
        // Nothing is lost: the state stays valid, and the same answer is refused again.
        for _ in 0..2 {
            let refused = leg(&server, &retry, user).await;
            assert_eq!(
                refused["error"],
                json!({
                    "code": -32603,
                    "message": "This caller may not answer the question: it waits for an answer of a person who may",
                    "data": {"reason": "not_approver"},
                }),
            );
        }
        // Without an answer, the question is asked again.
        let again = leg(&server, &next(&first, &reply, json!({})), user).await;
        assert!(again["result"]["inputRequests"]["sure"].is_object(), "{again}");
    }
    let manager = Some("manager@shop");
    let reply = leg(&server, &first, manager).await;
    let reply = leg(&server, &next(&first, &reply, yes), manager).await;
    assert_eq!(reply["result"]["content"][0]["text"], "true, says manager", "{reply}");
}

/// A rule that changes its mind: the question was open all the time, and the state unused.
#[tokio::test]
async fn a_refused_answer_is_accepted_later() {
    for single_use in [false, true] {
        let open = Arc::new(AtomicBool::new(false));
        let rule = Arc::clone(&open);
        let tool = Tool::new("ask", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
            Ok(ctx.elicit::<Sure>("Sure?").key("sure").await?.sure.to_string())
        });
        let tool = tool.approved_by(move |_| rule.load(Ordering::SeqCst));
        let (server, _) = server(tool, |builder| match single_use {
            true => builder
                .bind_principal(by_header)
                .single_use(true)
                .single_instance(true)
                .store(MemoryStore::new()),
            false => builder.bind_principal(by_header),
        });
        let first = json!({"name": "ask", "arguments": {}});
        let reply = leg(&server, &first, Some("eve@shop")).await;
        let retry = |sure: bool| next(&first, &reply, json!({"sure": accept(json!({"sure": sure}))}));
        let refused = leg(&server, &retry(true), Some("eve@shop")).await;
        assert_eq!(refused["error"]["data"]["reason"], "not_approver");
        open.store(true, Ordering::SeqCst);
        let answered = leg(&server, &retry(false), Some("eve@shop")).await;
        assert_eq!(answered["result"]["content"][0]["text"], "false", "{answered}");
        let other = leg(&server, &retry(true), Some("eve@shop")).await;
        assert_eq!(other["error"]["data"]["reason"] == "used", single_use, "{other}");
    }
}

#[tokio::test]
async fn in_a_session_a_question_that_nobody_may_answer_is_not_asked() {
    let server = Server::builder("bank", "1").keys(ring(7)).tool(grant).build().unwrap();
    let mut session = InSession::newest(&server).await;
    session.send(plain(1, "tools/call", json!({"name": "grant", "arguments": {}}))).await;
    let reply = session.receive().await;
    assert_eq!(
        reply["error"]["message"],
        "This caller may not answer the question: it waits for an answer of a person who may",
        "{reply}",
    );
}
