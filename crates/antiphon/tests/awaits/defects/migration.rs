//! Steps that a new version adds in front of recorded ones.

use super::*;
use antiphon::server::flow::Migration;

fn first_version(effects: &Effects) -> Server {
    let effects = effects.clone();
    server(tool(move |ctx| {
        let effects = effects.clone();
        async move {
            ctx.step("create", async |s| Ok(effects.note("create", s.key()))).await?;
            ctx.elicit::<Sure>("Sure?").await?;
            ok("created").await
        }
        .boxed()
    }))
}

/// Audits before it creates, under this key.
fn second_version(create: &'static str, migration: Migration, effects: &Effects) -> Server {
    let effects = effects.clone();
    let audits = tool(move |ctx| {
        let effects = effects.clone();
        async move {
            ctx.step("audit", async |s| Ok(effects.note("audit", s.key()))).await?;
            ctx.step(create, async |s| Ok(effects.note("create", s.key()))).await?;
            ctx.elicit::<Sure>("Sure?").await?;
            ok("audited and created").await
        }
        .boxed()
    });
    server(audits.version(2).migrate(migration))
}

/// Finishes a call of the first version on the second. Returns the result, and the number of runs of each step.
async fn upgraded(create: &'static str, migration: Migration) -> (String, usize, usize) {
    let effects = Effects::default();
    let new = second_version(create, migration, &effects);
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&first_version(&effects), Value::Null).await;
    let reply = settled(&mut talk, &new, json!({"sure": yes()})).await;
    let said = if reply.get("error").is_some() { refused(&reply).1.to_owned() } else { result_text(&reply) };
    (said, effects.runs("audit"), effects.runs("create"))
}

#[tokio::test]
async fn a_step_in_front_of_a_recorded_one_needs_a_word() {
    assert_eq!(upgraded("create", Migration::new()).await, ("flow_diverged".to_owned(), 0, 1));
}

#[tokio::test]
async fn an_added_step_runs_in_front_of_a_recorded_one() {
    let migration = Migration::new().added("audit");
    assert_eq!(upgraded("create", migration).await, ("audited and created".to_owned(), 1, 1));
}

#[tokio::test]
async fn an_added_step_forgives_nothing_else() {
    let migration = Migration::new().added("audit");
    let (said, _, creates) = upgraded("create_db", migration).await;
    assert_eq!((said.as_str(), creates), ("flow_diverged", 1));
    let migration = Migration::new().added("audit").rename("create", "create_db");
    assert_eq!(upgraded("create_db", migration).await, ("audited and created".to_owned(), 1, 1));
}
