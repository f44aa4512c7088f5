//! The scripts: one for each operation, each with one key.

use ::redis::Script;

/// The scripts of the operations.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) claim: Script,
    pub(super) renew: Script,
    pub(super) append: Script,
    pub(super) commit: Script,
    pub(super) release: Script,
    pub(super) load: Script,
    pub(super) put: Script,
    pub(super) get: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let script = |own| Script::new(&[include_str!("common.lua"), own].concat());
        Self {
            claim: script(include_str!("claim.lua")),
            renew: script(include_str!("renew.lua")),
            append: script(include_str!("append.lua")),
            commit: script(include_str!("commit.lua")),
            release: script(include_str!("release.lua")),
            load: script(include_str!("load.lua")),
            put: script(include_str!("put.lua")),
            get: script(include_str!("get.lua")),
        }
    }
}
