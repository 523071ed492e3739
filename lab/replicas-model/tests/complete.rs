//! Every state, without a mistake.

use jindou_replicas_model::{Replicas, Watch};
use stateright::{Checker, Model};
use std::time::Instant;

/// Visits every state of a log of this many groups.
fn all_states(groups: u8, watch: Watch) {
    let begun = Instant::now();
    let model = Replicas {
        groups,
        watch,
        planted: None,
    };
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!(
        "{watch:?}, {groups} groups: {} states, {} steps between them, depth {}, {:.1} s",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64()
    );
    assert!(checker.is_done());
    checker.assert_properties();
}

#[test]
fn an_update_in_four_groups() {
    all_states(4, Watch::Update);
}
#[test]
fn evidence_in_four_groups() {
    all_states(4, Watch::Evidence);
}
#[test]
fn strict_in_four_groups() {
    all_states(4, Watch::Strict);
}
