//! The `antiphon` program. The library of this crate contains its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_cli::run()
}
