//! What those are told whose types are no forms, and whose functions no tools.
//!
//! All programs in one run, which checks and builds nothing: what must compile is tested in `antiphon`, as
//! `tests/macros_*.rs`.

#[test]
fn ui() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
