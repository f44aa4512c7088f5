//! The `antiphon` program. See the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_cli::run()
}
