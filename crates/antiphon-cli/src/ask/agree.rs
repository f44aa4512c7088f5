//! The question before a browser opens.

use crate::{
    ask::prompt::{PromptResult, choose},
    failure::Failure,
};

/// Prompts for yes or no. Esc is no.
pub(crate) fn agrees(message: &str) -> Result<bool, Failure> {
    let choices = ["Yes", "No"].map(str::to_owned).to_vec();
    Ok(matches!(choose(message, choices, 0, None)?, PromptResult::Value(0)))
}
