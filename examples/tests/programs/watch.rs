//! The example `watch`: the client receives each change and reads the resource again.

use std::process::Command;

#[test]
fn each_change_is_received_and_read() {
    let output = Command::new(env!("CARGO_BIN_EXE_watch")).output().unwrap();
    let expected = |visit| format!("progress: {visit} of 3\nYou are visitor {visit}.\nread: {visit}\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), [1, 2, 3].map(expected).concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
