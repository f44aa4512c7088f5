//! Names of the schema, the tables and the functions in statements.

use super::options::PostgresOptions;
use crate::error::{StoreError, StoreErrorKind};

/// The maximum length of the schema's name and of the prefix: PostgreSQL cuts names to 63 bytes.
const MAX_NAME: usize = 40;

/// The schema and the prefix, checked: lowercase letters, digits and underscores.
#[derive(Clone, Debug)]
pub(super) struct Names {
    schema: String,
    prefix: String,
}

impl Names {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, StoreError> {
        let plain = |name: &str| {
            name.len() <= MAX_NAME
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
        };
        for (what, name, may_be_empty) in
            [("schema", &options.schema, false), ("table prefix", &options.table_prefix, true)]
        {
            if !plain(name) || (name.is_empty() && !may_be_empty) {
                let text = format!(
                    "the {what} {name:?} has other characters than a-z, 0-9 and _, begins with a digit, or is longer than {MAX_NAME}"
                );
                return Err(StoreError::read(StoreErrorKind::Invalid, "connect", text));
            }
        }
        Ok(Self { schema: options.schema.clone(), prefix: options.table_prefix.clone() })
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// Returns the name of the table of migrations.
    pub(super) fn migrations(&self) -> String {
        self.fill("{migrations}")
    }

    /// Returns a statement with the names in the places of `{name}`. The names are checked, so quotes are enough.
    pub(super) fn fill(&self, statement: &str) -> String {
        const NAMES: [&str; 10] =
            ["migrations", "calls", "steps", "blobs", "now", "claim", "renew", "append", "commit", "release"];
        let mut filled = statement.replace("{schema}", &format!("\"{}\"", self.schema));
        for name in NAMES {
            let qualified = format!("\"{}\".\"{}{name}\"", self.schema, self.prefix);
            filled = filled.replace(&format!("{{{name}}}"), &qualified);
            let function = format!("\"{}\".\"{}{name}_v1\"", self.schema, self.prefix);
            filled = filled.replace(&format!("{{{name}()}}"), &function);
            filled = filled.replace(&format!("{{{name}:}}"), &format!("\"{}{name}\"", self.prefix));
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_filled() {
        let names = |schema: &str, prefix: &str| {
            Names::new(&PostgresOptions::default().schema(schema).table_prefix(prefix))
                .map_err(|error| error.kind())
        };
        assert_eq!(
            names("mine", "mcp_").unwrap().fill("{claim()} {calls}"),
            r#""mine"."mcp_claim_v1" "mine"."mcp_calls""#
        );
        for (schema, prefix) in
            [("", ""), ("a\"b", ""), ("A", ""), ("1a", ""), ("a", "x;"), ("a", "2"), (&"a".repeat(41), "")]
        {
            assert_eq!(
                names(schema, prefix).map(drop),
                Err(StoreErrorKind::Invalid),
                "{schema:?} {prefix:?}"
            );
        }
    }
}
