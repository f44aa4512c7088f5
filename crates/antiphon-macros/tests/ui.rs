//! The error messages of the macros, for programs that must not compile.
//!
//! One run checks all programs and builds none of them. `tests/macros` of the crate `antiphon` has the programs that
//! must compile.

#[test]
fn ui() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
