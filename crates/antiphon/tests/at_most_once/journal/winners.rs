//! The first of several branches is the same one after a crash, in a race and in a set of futures: no two branches act.

use super::{Ended, Pick, Play, World, millis};
use antiphon::{
    Error, Result,
    server::{Ctx, State, StepError, flow::Winner},
    tool,
};
use futures_util::{
    StreamExt as _,
    stream::{self, FuturesUnordered},
};

async fn offer(ctx: &Ctx, world: &World, name: &str, time: u64) -> Result<String, StepError> {
    let offer = ctx.step("offer", async |_| {
        world.waits(time).await;
        Ok(name.to_owned())
    });
    offer.reconcile(async |_| Ok(None)).await
}

/// Books the best offer, and sends a mail.
async fn book(ctx: &Ctx, world: &World, best: String) -> Result<String> {
    for what in ["book", "mail"] {
        let did = format!("{what} {best}");
        // `book` in the scope of the offer, `mail` in none: one path for each winner, and one path for all.
        let scope = ctx.scope(&*best);
        let at: &Ctx = if what == "book" { &scope } else { ctx };
        let step = at.step(what, async |s| Ok(world.does(&did, &s).await?));
        step.reconcile(async |_| world.finds(&did).await).await?;
    }
    Ok(best)
}

fn first<T>(won: Winner<T, T>) -> T {
    match won {
        Winner::A(one) | Winner::B(one) => one,
    }
}

#[tool(write_ahead)]
async fn race(ctx: &Ctx, world: State<World>) -> Result<String> {
    let (x, y) = (ctx.scope("x"), ctx.scope("y"));
    let won = ctx.select("first", (offer(&x, &world, "x", 20), offer(&y, &world, "y", 10))).await;
    book(ctx, &world, first(won)?).await
}

/// The inner race is within the scope of a branch of the outer one, whose other branch is slow.
#[tool(write_ahead)]
async fn nested(ctx: &Ctx, world: State<World>) -> Result<String> {
    let (in_a, in_b) = (ctx.scope("a"), ctx.scope("b"));
    let outer = async |scope: &Ctx, names: [&'static str; 2], times: [u64; 2]| -> Result<String, StepError> {
        let (x, y) = (scope.scope("x"), scope.scope("y"));
        let [one, two] = names;
        let won =
            scope.select("in", (offer(&x, &world, one, times[0]), offer(&y, &world, two, times[1]))).await;
        {
            let best = first(won)?;
            offer(scope, &world, &best, 5).await
        }
    };
    let won =
        ctx.select("out", (outer(&in_a, ["ax", "ay"], [60, 40]), outer(&in_b, ["bx", "by"], [20, 10]))).await;
    book(ctx, &world, first(won)?).await
}

/// The other offers are waited for before the booking.
#[tool(write_ahead)]
async fn set(ctx: &Ctx, world: State<World>) -> Result<String> {
    let _: Pick = ctx.elicit("Which?").key("name").await?;
    let [x, y, z] = ["x", "y", "z"].map(|name| ctx.scope(name));
    let offers = [offer(&x, &world, "x", 20), offer(&y, &world, "y", 10), offer(&z, &world, "z", 11)];
    let mut offers: FuturesUnordered<_> = offers.into_iter().collect();
    let best = offers.next().await.expect("three offers")?;
    while let Some(other) = offers.next().await {
        other?;
    }
    book(ctx, &world, best).await
}

#[tool(write_ahead)]
async fn buffered(ctx: &Ctx, world: State<World>) -> Result<String> {
    let [x, y, z] = ["x", "y", "z"].map(|name| ctx.scope(name));
    let offers = [offer(&x, &world, "x", 20), offer(&y, &world, "y", 10), offer(&z, &world, "z", 1)];
    let offers: Vec<_> = stream::iter(offers).buffer_unordered(2).collect().await;
    let order: Vec<String> = offers.into_iter().collect::<Result<_, _>>()?;
    book(ctx, &world, order.join("-")).await
}

/// Two offers fail; the first error decides what is undone.
#[tool(write_ahead)]
async fn tried(ctx: &Ctx, world: State<World>) -> Result<String> {
    let fails = async |name: &'static str, time: u64| {
        let fails = ctx.step(name, async |_| {
            world.waits(time).await;
            Err::<(), _>(Error::from(StepError::new(name)))
        });
        Err::<(), _>(fails.reconcile(async |_| Ok(None)).await.map_or_else(|_| name, |()| "none"))
    };
    let first = tokio::try_join!(fails("x", 20), fails("y", 10)).expect_err("both fail");
    book(ctx, &world, first.to_owned()).await
}

/// A lookup that is no step takes part in the race.
#[tool(write_ahead)]
async fn lookup(ctx: &Ctx, world: State<World>) -> Result<String> {
    let time = if world.notes("run") == 2 { 5 } else { 500 };
    let looks = async {
        world.waits(time).await;
        Ok("looked".to_owned())
    };
    let won = ctx.select("first", (looks, offer(ctx, &world, "offered", 20))).await;
    book(ctx, &world, first(won)?).await
}

const BUILD: super::Build =
    |builder| builder.tool(race).tool(nested).tool(set).tool(buffered).tool(tried).tool(lookup);

/// One branch acts, and the result says which.
fn one_acts(ended: &Ended) {
    let best = ended.text();
    ended.did(&[&format!("book {best}"), &format!("mail {best}")]);
}

each_tool! {
    the_first_branch_is_the_same_after_a_crash:
    async |tool| Play::of(tool, BUILD).at_each_operation(one_acts).await;
    race nested set buffered tried lookup
}

each_tool! {
    /// The store confirms its operations in another order than they took effect.
    the_first_branch_is_the_same_whichever_confirmation_is_late:
    async |tool| {
        for operation in 0..14 {
            let play = Play { late: Some((operation, millis(20))), ..Play::of(tool, BUILD) };
            play.at_each_operation(one_acts).await;
        }
    };
    race nested set buffered tried lookup
}

each_tool! {
    the_first_branch_is_the_same_after_the_client_hung_up:
    async |tool| Play::of(tool, BUILD).at_each_time(millis(90), one_acts).await;
    race nested set buffered tried lookup
}
