//! Short runs of `jindou bench replicas` with the command `jindou` that lies next to the program.

use std::process::Command;

fn bench(arguments: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_jindou-bench"))
        .arg("replicas")
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
