//! A change is heard, and what changed is read again.

use std::process::Command;

#[test]
fn each_visit_is_told_and_read() {
    let output = Command::new(env!("CARGO_BIN_EXE_watch")).output().unwrap();
    let told = |visit| format!("progress: {visit} of 3\nYou are visitor {visit}.\nread: {visit}\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), [1, 2, 3].map(told).concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
