//! Short runs of `jindou bench replicas` with the command `jindou` from the same target folder.

use std::process::Command;

fn bench(arguments: &[&str]) -> String {
    run(&["replicas"], arguments)
}

fn run(command: &[&str], arguments: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_jindou-bench"))
        .args(command)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let why = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{arguments:?}: {said}{why}");
    said
}

#[test]
#[ignore = "needs a build of the command jindou"]
fn three_servers_answer_as_one() {
    let said = bench(&["check", "--steps", "400"]);
    assert!(said.contains("all as of one server"), "{said}");
    if !said.contains("not run: the W3C's suites") {
        for passed in [
            "Update: 94 of 94",
            "parameters: 9 of 9",
            "paths: 5 of 5",
            "Protocol: 34 of 34",
        ] {
            assert!(said.contains(passed), "{said}");
        }
    }
}

#[test]
#[ignore = "needs a build of the command jindou"]
fn one_fault_of_each_kind() {
    let said = bench(&["faults", "--rounds", "8", "--pause", "1s"]);
    assert!(
        said.contains("; 0 lost, repeated, wrong or too old"),
        "{said}"
    );
}

#[test]
fn seeds_hold_and_a_planted_fault_is_found() {
    let said = bench(&["simulate", "--seeds", "40"]);
    assert!(said.contains("hold in 40 seeds from 0"), "{said}");
    let said = bench(&["simulate", "--plant", "RequestsForgotten"]);
    assert!(said.contains("1 of 1 planted faults found"), "{said}");
    let said = run(&["cluster", "updates"], &["simulate", "--seeds", "20"]);
    assert!(said.contains("hold in 20 seeds from 0"), "{said}");
    let trace = || bench(&["simulate", "--seed", "3", "--trace"]);
    let first = trace();
    assert!(first.contains("hash "), "{first}");
    assert_eq!(first, trace());
}
