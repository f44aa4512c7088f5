//! Selects loom's types in the sources of the store.

fn main() {
    println!("cargo::rustc-cfg=antiphon_loom");
    println!("cargo::rerun-if-changed=build.rs");
}
