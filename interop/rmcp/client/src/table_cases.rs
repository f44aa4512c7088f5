//! Whole calls by rmcp's loop, from a JSON table: the call, the answers, the expected questions and the expected
//! result.

use crate::{
    check::{CheckResult, expect_equal},
    fleet::{Call, Fleet, Retry},
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
    /// Answers of the callbacks by key, as whole results.
    #[serde(default)]
    answers: Map<String, Value>,
    /// Expected questions by key, as rmcp passes their parameters to callbacks.
    #[serde(default)]
    asked: Map<String, Value>,
    /// Number of requests of the call.
    #[serde(default = "one_request")]
    requests: usize,
    outcome: Outcome,
}

fn one_request() -> usize {
    1
}

/// Expected end of a call.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// This result, compared without `_meta`.
    Result(Value),
    /// This error, compared completely.
    Error(Value),
    /// rmcp's loop stops at its limit of rounds.
    GivesUp,
}

/// Parses a table.
///
///
///
/// # Errors
///
/// If the JSON is not a table.
pub(crate) fn read(table: &str) -> Result<Vec<Case>, serde_json::Error> {
    serde_json::from_str(table)
}

impl Case {
    pub(crate) async fn run(&self, fleet: &Fleet) -> CheckResult {
        fleet.script.set(&self.answers);
        let before = fleet.replicas.as_ref().map(|replicas| replicas.requests());
        let outcome = fleet.call(&self.call, &Retry::default()).await;
        match (&self.outcome, outcome) {
            (Outcome::Result(wanted), Ok(found)) => expect_equal(&without_server_info(found)?, wanted)?,
            (Outcome::Error(wanted), Err(ServiceError::McpError(found))) => {
                expect_equal(&serde_json::to_value(found).map_err(|fault| fault.to_string())?, wanted)?;
            }
            (Outcome::GivesUp, Err(ServiceError::InputRequiredRoundsExceeded { .. })) => {}
            (_, outcome) => return Err(format!("outcome {outcome:?}")),
        }
        let asked = fleet.script.asked();
        if asked != self.asked {
            return Err(format!("asked {}, wanted {}", json!(asked), json!(self.asked)));
        }
        if let (Some(replicas), Some(before)) = (&fleet.replicas, before) {
            expect_equal(&(replicas.requests() - before), &self.requests)?;
        }
        Ok(())
    }
}

/// The result without `_meta`.
///
///
///
/// # Errors
///
/// If `_meta` does not name the server.
pub(crate) fn without_server_info(mut result: Value) -> Result<Value, String> {
    let meta = result.as_object_mut().and_then(|members| members.remove("_meta")).unwrap_or_default();
    match meta["io.modelcontextprotocol/serverInfo"]["name"].as_str() {
        Some("antiphon-demo" | "antiphon-asks") => Ok(result),
        _ => Err(format!("_meta does not name the server: {meta}")),
    }
}
