//! Whole calls by the loop of rmcp: what is called, what is answered, what is asked, what comes of it.

use crate::{
    Verdict,
    fleet::{Call, Fleet, Retry},
    same,
};
use rmcp::service::ServiceError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// One call.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) note: String,
    #[serde(flatten)]
    call: Call,
    /// What the callbacks answer, by key: whole results.
    #[serde(default)]
    answers: Map<String, Value>,
    /// What the callbacks are asked, by key: the parameters as rmcp has them.
    #[serde(default)]
    asked: Map<String, Value>,
    /// How many requests it takes.
    #[serde(default = "one")]
    requests: usize,
    outcome: Outcome,
}

fn one() -> usize {
    1
}

/// What comes of a call.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// This result, all of it but `_meta`.
    Result(Value),
    /// This error, all of it.
    Error(Value),
    /// The loop of rmcp stops.
    GivesUp,
}

/// # Errors
/// If the table is no table.
pub(crate) fn read(table: &str) -> Result<Vec<Case>, serde_json::Error> {
    serde_json::from_str(table)
}

impl Case {
    pub(crate) async fn play(&self, fleet: &Fleet) -> Verdict {
        fleet.script.set(&self.answers);
        let before = fleet.replicas.as_ref().map(|replicas| replicas.requests());
        let came = fleet.call(&self.call, &Retry::default()).await;
        match (&self.outcome, came) {
            (Outcome::Result(wanted), Ok(found)) => same(&without_stamp(found)?, wanted)?,
            (Outcome::Error(wanted), Err(ServiceError::McpError(found))) => {
                same(&serde_json::to_value(found).map_err(|fault| fault.to_string())?, wanted)?;
            }
            (Outcome::GivesUp, Err(ServiceError::InputRequiredRoundsExceeded { .. })) => {}
            (_, came) => return Err(format!("came to {came:?}")),
        }
        let asked = fleet.script.asked();
        if asked != self.asked {
            return Err(format!("asked {}, wanted {}", json!(asked), json!(self.asked)));
        }
        if let (Some(replicas), Some(before)) = (&fleet.replicas, before) {
            same(&(replicas.requests() - before), &self.requests)?;
        }
        Ok(())
    }
}

/// The result without `_meta`, which has to say who answered.
pub(crate) fn without_stamp(mut result: Value) -> Result<Value, String> {
    let meta = result.as_object_mut().and_then(|members| members.remove("_meta")).unwrap_or_default();
    match meta["io.modelcontextprotocol/serverInfo"]["name"].as_str() {
        Some("antiphon-demo" | "antiphon-asks") => Ok(result),
        _ => Err(format!("_meta does not say who answered: {meta}")),
    }
}
