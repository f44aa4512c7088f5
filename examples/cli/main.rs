//! The `antiphon` program, built in this package for its tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_cli::run()
}
