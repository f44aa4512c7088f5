//! The rules that arguments must keep besides those that decoding enforces.
//!
//! The schema and the decoder of a typed tool come from the same type. Decoding refuses most of what the schema forbids: a
//! number in the place of a text, a member that is missing, a variant that does not exist. The rest is checked here, on the
//! text of the arguments, without a [`Value`] in between:
//!
//! - bounds of numbers, lengths of texts and arrays, fixed values;
//! - arrays in the place of objects, and objects in the place of names, both of which serde takes;
//! - members that are not allowed.
//!
//! A [`Rule`] is compiled once from the schema. A part of the schema that decoding enforces alone is no rule at all, so that a
//! tool that takes plain texts and numbers is checked by decoding only. A schema with a keyword that is not known here is
//! [`Uncovered`]: its tool needs the validator.

mod check;
mod compile;
#[cfg(test)]
mod tests;

pub use compile::Uncovered;

use check::Check;
use compile::{Compiler, Definitions, Rule};
use serde_json::Value;

/// The rules of one tool's arguments.
#[derive(Debug)]
pub struct Rules {
    /// `None`: decoding alone decides.
    root: Option<Rule>,
    definitions: Definitions,
}

impl Rules {
    /// Compiles the schema of a type that decodes the arguments.
    ///
    /// # Errors
    /// If the schema holds a keyword that is not covered.
    pub fn of(schema: &Value) -> Result<Self, Uncovered> {
        let (root, definitions) = Compiler::compile(schema)?;
        Ok(Self { root, definitions })
    }

    /// Returns the first rule that the arguments break, in words; `None` if they keep all of them.
    #[must_use]
    pub fn fault(&self, text: &str) -> Option<String> {
        let root = self.root.as_ref()?;
        Check::fault(&self.definitions, text, root)
    }
}
