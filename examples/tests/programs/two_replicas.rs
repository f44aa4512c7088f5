//! The example `two_replicas`: its legs run on different replicas.

use std::process::{Command, Stdio};

fn run() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_two_replicas")).stdin(Stdio::null()).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    stdout
}

/// Returns the process ids of the replicas.
fn processes(stdout: &str) -> Vec<&str> {
    stdout.lines().filter_map(|line| line.split_once(": process ")?.1.split(',').next()).collect()
}

#[test]
fn each_leg_runs_on_another_replica_and_one_may_be_killed() {
    let stdout = run();
    let lines: Vec<&str> = stdout.lines().filter(|line| !line.contains(": process ")).collect();
    assert_eq!(
        lines,
        [
            "provision, leg 1: replica A",
            "provision, leg 2: replica B",
            "Provisioned \"orders\" in eu-west-1.",
            "update_work_item, leg 1: replica A",
            "update_work_item, leg 2: replica B",
            "update_work_item, leg 3: replica A",
            "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.",
            "provision, leg 1: replica B",
            "killed: replica B",
            "provision, leg 2: replica A",
            "Provisioned \"invoices\" in eu-west-1.",
        ]
    );
    let processes = processes(&stdout);
    assert_eq!(processes.len(), 2);
    assert_ne!(processes[0], processes[1]);
    for process in processes {
        let alive = Command::new("sh")
            .args(["-c", &format!("kill -0 {process}")])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!alive.success(), "process {process} is left");
    }
}
