//! Mutants: defects on purpose, which the drill and the tests must notice. Only a build with `--cfg antiphon_mutants` has
//! them.

/// Returns true if this process runs as the mutant of this name, which the variable `ANTIPHON_MUTANT` holds.
#[cfg(antiphon_mutants)]
#[must_use]
pub fn is_mutant(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("ANTIPHON_MUTANT").ok()).as_deref() == Some(name)
}

/// Returns false: this build has no mutants.
#[cfg(not(antiphon_mutants))]
#[must_use]
pub const fn is_mutant(_name: &str) -> bool {
    false
}
