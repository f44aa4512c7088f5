//! Reports of the replay check: none for a correct program, wherever the time of a leg ended it.

use super::*;
use crate::common::one_tool::built;
use antiphon::server::operations::ReplayCheck;
use std::sync::{Arc, Mutex};
use tokio::time::sleep;

/// Returns the reports of the replay check for a call of this tool.
async fn faults(tool: Tool, answers: Value) -> (String, Vec<String>) {
    let faults = Arc::<Mutex<Vec<String>>>::default();
    let reported = faults.clone();
    let server = built(tool.needs(antiphon::wire::AskSupport::FORM), |builder| {
        let builder = builder.replay_check(ReplayCheck::Always);
        builder.on_replay_fault(move |fault| reported.lock().unwrap().push(fault.to_string()))
    });
    let said = result_text(&ToolCall::new(json!({})).through(&server, &answers).await);
    let faults = faults.lock().unwrap().clone();
    (said, faults)
}

/// Two races in a row of a question and a timer that is shorter than the grace. The grace of the first leg is over in
/// the second race. The handler that runs again begins with that race, and its timer fires.
#[tokio::test(start_paused = true)]
async fn a_race_that_the_grace_left_undecided_may_be_decided_when_the_handler_runs_again() {
    let races = tool(|ctx| {
        async {
            let mut timers = 0;
            for turn in 0..2_u64 {
                let asks = ctx.elicit::<Sure>("Sure?").nth(turn);
                let race = ctx.select(("w", turn), (asks, sleep(ms(41)))).await;
                timers += u64::from(matches!(race, antiphon::server::flow::Winner::B(())));
            }
            Ok(timers.to_string())
        }
        .boxed()
    });
    let came_to = faults(races, json!({"sure#1": yes()})).await;
    assert_eq!(came_to, ("1".to_owned(), vec![]));
}
