//! Tasks of tools that accept the answers of some callers only, called by another caller in a session: nobody can answer, and no
//! request waits without end.

use crate::{
    client::accept,
    session_client::SessionClient,
    view_tools::{Gate, gate},
};
use antiphon::{
    Error, Form,
    seal::Principal,
    server::{Ask, Caller, Ctx, Reply, Server, State, asks::InputRequired},
    tool,
};
use serde_json::json;

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

fn is_manager(principal: &Principal) -> bool {
    principal.subject() == Some("manager")
}

#[tool(task = "required", approved_by(is_manager))]
async fn awaits(ctx: &Ctx) -> Result<String, Error> {
    let Name { name } = ctx.elicit("Whose?").key("name").await?;
    Ok(name)
}

#[tool(task = "required", approved_by(is_manager))]
async fn beside_a_step(ctx: &Ctx, gate: State<Gate>) -> Result<String, Error> {
    let step = ctx.step("work", async |_| {
        gate.0.0.acquire().await.unwrap().forget();
        Ok(())
    });
    let (asked, worked) = tokio::join!(ctx.elicit::<Name>("Whose?").key("name"), step);
    worked?;
    Ok(asked?.name)
}

#[tool(task = "required", approved_by(is_manager))]
async fn opens_a_page(ctx: &Ctx) -> Result<String, Error> {
    ctx.elicit_url("Pay.", |r| format!("https://pay.example/{r}")).await?;
    Ok("paid".to_owned())
}

#[tool(task = "required", approved_by(is_manager))]
async fn by_hand(ctx: &Ctx) -> Result<Reply<String>, Error> {
    let ask = Ask::of::<Name>("name", "Whose?");
    Ok(match ctx.by_hand().form::<Name>(&ask)? {
        None => Reply::from(InputRequired::ask(ask)),
        Some(_) => Reply::Complete("done".to_owned()),
    })
}

#[tool(task = "optional", approved_by(is_manager))]
async fn becomes_a_task(ctx: &Ctx) -> Result<String, Error> {
    ctx.into_task().await?;
    let Name { name } = ctx.elicit("Whose?").key("name").await?;
    Ok(name)
}

fn server(user: Option<&'static str>) -> Server {
    Server::builder("approvers", "1")
        .bind_principal(move |_: &Caller<'_>| Ok::<_, String>(user.map(Principal::user)))
        .state(gate())
        .tool(awaits)
        .tool(beside_a_step)
        .tool(opens_a_page)
        .tool(by_hand)
        .tool(becomes_a_task)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_result_that_waits_for_somebody_else_is_refused() {
    for tool in ["awaits", "beside_a_step", "opens_a_page", "by_hand", "becomes_a_task"] {
        for user in [None, Some("clerk"), Some("manager")] {
            let mut session = SessionClient::open(&server(user)).await;
            let id = session.task(tool, json!({})).await;
            let result = session.begin("tasks/result", json!({"taskId": id})).await;
            if user == Some("manager") {
                let asked = session.asked().await;
                assert_eq!(asked["method"], "elicitation/create", "{tool}");
                session.answer(&asked, accept(json!({"name": "Anna"}))).await;
                continue;
            }
            let reply = session.reply(result).await;
            assert_eq!(reply["error"]["data"]["reason"], "not_approver", "{tool} {user:?}: {reply}");
            assert!(session.is_asked_nothing().await, "{tool}");
            // The task is as it was, and its caller may end it.
            assert_eq!(session.get(&id).await["status"], "input_required", "{tool}");
            let cancelled = session.send("tasks/cancel", json!({"taskId": id})).await;
            assert_eq!(cancelled["result"]["status"], "cancelled", "{tool}: {cancelled}");
        }
    }
}
