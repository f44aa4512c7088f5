//! The `antiphon` program once more, so that this package's tests have it.

use std::process::ExitCode;

fn main() -> ExitCode {
    antiphon_cli::run()
}
