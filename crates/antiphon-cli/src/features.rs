//! The texts about features that this program was built without.

/// Returns the text of an error: `what` was used, and its feature is absent.
pub(crate) fn absent(what: &str, feature: &str) -> String {
    format!(
        "{what} needs the feature `{feature}`, which this program was built without: \
         `cargo install antiphon-cli --features {feature}`, or in a clone `cargo run -p antiphon-cli --features {feature} -- ..`"
    )
}
