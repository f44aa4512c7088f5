//! The program `antiphon`, which another package builds.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::programs::run;

/// Returns the path of the program. A run of the tests of the whole workspace has built it; else it is built here.
pub(crate) fn antiphon() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.ancestors().nth(2).unwrap();
    let program = folder.join("antiphon");
    if !is_fresh(&program) {
        let profile = folder.file_name().and_then(|name| name.to_str()).unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--locked", "--quiet", "-p", "antiphon-cli", "--bin", "antiphon"]);
        build.args(["--profile", if profile == "debug" { "dev" } else { profile }]);
        run(build.arg("--target-dir").arg(folder.parent().unwrap()));
    }
    program
}

/// Returns true if a program is there, and none of its sources is newer. Cargo lists the sources beside it.
fn is_fresh(program: &Path) -> bool {
    let changed = |file: &Path| file.metadata().and_then(|file| file.modified());
    let (Ok(built), Ok(list)) = (changed(program), std::fs::read_to_string(program.with_extension("d")))
    else {
        return false;
    };
    let sources = list.split_once(": ").map_or("", |(_, sources)| sources);
    sources
        .replace("\\ ", "\0")
        .split_whitespace()
        .all(|source| changed(Path::new(&source.replace('\0', " "))).is_ok_and(|source| source <= built))
}
