//! Values of layers in tasks: those that are kept by name reach every leg, in every process; the others are absent.

use crate::{
    client::{accept, text_of},
    versions::Fleet,
};
use antiphon::{
    Result,
    server::{Ctx, ServerBuilder, layers::Call},
    tool,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The value of a program.
#[derive(Clone, Serialize, Deserialize)]
struct Tenant {
    name: String,
}

/// The same, as a later version has it.
#[derive(Clone, Serialize, Deserialize)]
struct Customer {
    number: u32,
}

/// Shows what it sees of its request.
fn seen(ctx: &Ctx) -> String {
    let request = ctx.request();
    let tenant = request.extension::<Tenant>().map_or("none", |tenant| &tenant.name);
    let customer = request.extension::<Customer>().map(|customer| customer.number);
    format!("{tenant} {customer:?} {}", request.headers().is_some())
}

/// Asks between two legs.
async fn asking(ctx: &Ctx) -> Result<String> {
    let first = ctx.step("first", async |_| Ok(seen(ctx))).await?;
    ctx.confirm("Really?").key("sure").await?;
    Ok(format!("{first}, {}", seen(ctx)))
}

/// A task from its beginning.
#[tool(task = "required")]
async fn required(ctx: &Ctx) -> Result<String> {
    asking(ctx).await
}

/// A task after its first leg.
#[tool(task = "optional")]
async fn promoted(ctx: &Ctx) -> Result<String> {
    let before = ctx.step("before", async |_| Ok(seen(ctx))).await?;
    ctx.into_task().await?;
    Ok(format!("{before}, {}", asking(ctx).await?))
}

/// Reads the user of the request, or says that there is none.
fn of_call(builder: ServerBuilder) -> ServerBuilder {
    let tenant = |call: &Call| {
        let user = call.headers().and_then(|headers| headers.get("x-user")?.to_str().ok());
        Tenant { name: user.unwrap_or("nobody").to_owned() }
    };
    builder.tool(required).tool(promoted).request_context(tenant)
}

#[test]
fn kept_values_reach_every_leg_in_every_process() {
    type Build = fn(ServerBuilder) -> ServerBuilder;
    let plain: Build = of_call;
    let keeps: Build = |builder| of_call(builder).keep_in_tasks::<Tenant>("tenant");
    let only_keeps: Build = |builder| builder.tool(required).tool(promoted).keep_in_tasks::<Tenant>("tenant");
    let renamed: Build = |builder| of_call(builder).keep_in_tasks::<Tenant>("other");
    let retyped: Build = |builder| builder.tool(required).tool(promoted).keep_in_tasks::<Customer>("tenant");
    for (what, tool, first, second, expected) in [
        ("kept", "required", keeps, keeps, "ada None false, ada None false"),
        // The layer of the program adds a value only if the task has none.
        ("not kept", "required", plain, plain, "nobody None false, nobody None false"),
        ("the second process has no layer", "required", keeps, only_keeps, "ada None false, ada None false"),
        ("a row without values", "required", plain, keeps, "nobody None false, nobody None false"),
        ("another name", "required", keeps, renamed, "ada None false, nobody None false"),
        ("a type that does not fit", "required", keeps, retyped, "ada None false, none None false"),
        ("promoted", "promoted", keeps, keeps, "ada None true, ada None false, ada None false"),
    ] {
        let fleet = Fleet::new();
        let (first, second) = (fleet.process(first), fleet.process(second));
        let id = first.runtime.block_on(async {
            let ada = first.client.user("ada");
            let id = ada.task(tool, json!({})).await;
            ada.asked(&id, &["sure"]).await;
            id
        });
        // From here on the first process stands still. Its answer comes from another user, who adds nothing.
        let task: Value = second.runtime.block_on(async {
            let bob = second.client.user("bob");
            bob.update(&id, json!({"sure": accept(json!({"value": true}))})).await;
            bob.status(&id, "completed").await
        });
        assert_eq!(text_of(&task), expected, "{what}");
    }
}

#[test]
fn two_values_of_one_name_do_not_build() {
    let builder = antiphon::server::Server::builder("tasks", "1.0");
    let built = builder.keep_in_tasks::<Tenant>("tenant").keep_in_tasks::<Customer>("tenant").build();
    assert!(built.unwrap_err().to_string().contains("`keep_in_tasks(\"tenant\")` is there twice"));
}
