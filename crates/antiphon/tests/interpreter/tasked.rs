//! A client of a task: its answers come early, late, twice, and again with other content, and it may cancel the task.

use crate::{
    case::{Move, MoveKind, PAUSES},
    mortal::Death,
    reply::{FORETOLD, ShownAsk, answer, of_anything, shown},
    rules,
    sealed::CallEnd,
    stored::{Client, cut},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};
use tokio::time::sleep;

/// More reads than any task needs: each waits for a second.
const MOST_READS: usize = 600;

impl Client<'_> {
    /// Follows a task to its end.
    pub(crate) async fn task(
        &mut self,
        id: &str,
        mut moves: impl Iterator<Item = Move>,
    ) -> Result<CallEnd, String> {
        // The keys that were ever shown, with their questions.
        let mut known: BTreeMap<String, ShownAsk> = BTreeMap::new();
        for _ in 0..MOST_READS {
            let one = moves.next().unwrap_or(Move { pause: 6, ..Move::all() });
            sleep(Duration::from_millis(PAUSES[usize::from(one.pause % 8)])).await;
            if let MoveKind::Dies { after, takes_effect } = one.what {
                self.fleet.dies(Death { after: after.into(), takes_effect });
            }
            let task = self.fleet.settled("tasks/get", &json!({"taskId": id})).await?;
            if self.fleet.trace.is_foretold.load(Ordering::Relaxed) {
                // The program goes its way with an answer that is not the person's.
                self.is_cancelled = true;
                return Ok(CallEnd::Cancelled);
            }
            self.look()?;
            let task = &task["result"];
            match task["status"].as_str() {
                Some("completed") => {
                    let text = task["result"]["content"][0]["text"].as_str().unwrap_or_default();
                    let checked = rules::result(self.case, &self.fleet, text);
                    return match self.is_cancelled {
                        // Its open questions were cancelled.
                        true => Ok(CallEnd::Cancelled),
                        false => checked.map(|()| CallEnd::Done),
                    };
                }
                Some("cancelled") if self.is_cancelled => return Ok(CallEnd::Cancelled),
                Some("failed") if task["error"]["data"]["reason"] == "outcome_unknown" => {
                    return rules::unknown(self.case, &self.fleet, self.interruptions, &task["error"])
                        .map(|()| CallEnd::Unknown);
                }
                Some("failed") if self.is_cancelled => return Ok(CallEnd::Cancelled),
                Some("failed") if self.case.program.fails() && is_panic(&task["error"]) => {
                    return Ok(CallEnd::Failed);
                }
                Some("working" | "input_required") => {}
                _ => return Err(format!("{task}")),
            }
            if self.is_cancelled {
                continue;
            }
            if matches!(one.what, MoveKind::Cancels) {
                self.fleet.settled("tasks/cancel", &json!({"taskId": id})).await?;
                self.is_cancelled = true;
                continue;
            }
            let asked = task["inputRequests"].as_object().into_iter().flatten();
            let open: BTreeMap<String, ShownAsk> =
                asked.map(|(key, request)| (key.clone(), shown(&request["params"]))).collect();
            self.updates(id, &open, &known, one).await?;
            known.extend(open);
        }
        Err(format!("the task does not end in {MOST_READS} reads"))
    }

    /// Answers some of the open questions, and some of those that are not open.
    async fn updates(
        &mut self,
        id: &str,
        open: &BTreeMap<String, ShownAsk>,
        known: &BTreeMap<String, ShownAsk>,
        one: Move,
    ) -> Result<(), String> {
        // A question that is asked again has another key: its path and a number.
        let path_of = |key: &str| key.split('~').next().unwrap_or_default().to_owned();
        let paths: BTreeMap<String, ShownAsk> =
            open.iter().map(|(key, shown)| (path_of(key), shown.clone())).collect();
        if paths.len() < open.len() {
            return Err(format!("a question is open under two keys: {:?}", open.keys()));
        }
        self.shows(&paths)?;
        let answers = self.answers(&paths, Move { extra: false, ..one });
        let mut keyed = serde_json::Map::new();
        for key in open.keys() {
            if let Some(answer) = answers.get(&path_of(key)) {
                keyed.insert(key.clone(), answer.clone());
            }
        }
        // Other content than the person's answer, to what is not open: superseded, answered, or not asked yet.
        let other = |key: &str, shown: &ShownAsk| {
            let path = path_of(key);
            let others = (1..20).map(|n| answer(self.case.seed.wrapping_add(n), &path, shown).1);
            let same = answer(self.case.seed, &path, shown).1;
            others.into_iter().find(|it| *it != same).unwrap_or(Value::Null)
        };
        if one.extra {
            let closed = known.iter().filter(|(key, _)| !open.contains_key(*key));
            keyed.extend(closed.map(|(key, shown)| (key.clone(), other(key, shown))));
            for key in ["a", "b", "pick", "a~2", "pick~2"] {
                if !open.contains_key(key) {
                    keyed.entry(key).or_insert_with(|| of_anything(FORETOLD));
                }
            }
        }
        if keyed.is_empty() {
            return Ok(());
        }
        let params = json!({"taskId": id, "inputResponses": keyed});
        match one.what {
            MoveKind::Cuts { polls, .. } => cut(self.fleet.request("tasks/update", &params), polls).await,
            MoveKind::Loses => drop(self.fleet.settled("tasks/update", &params).await?),
            _ => {}
        }
        let reply = self.fleet.settled("tasks/update", &params).await?;
        if !reply["result"].is_object() {
            return Err(format!("an update is refused: {reply}"));
        }
        if matches!(one.what, MoveKind::Twice(_) | MoveKind::Returns(_)) {
            let others: serde_json::Map<String, Value> = open
                .iter()
                .filter(|(key, _)| keyed.contains_key(*key))
                .map(|(key, shown)| (key.clone(), other(key, shown)))
                .collect();
            self.fleet.settled("tasks/update", &json!({"taskId": id, "inputResponses": others})).await?;
        }
        Ok(())
    }
}

/// Returns true if this is the error of a panic.
fn is_panic(error: &Value) -> bool {
    error["data"]["reason"].is_null()
        && error["message"].as_str().is_some_and(|text| text.starts_with("Internal error"))
}
