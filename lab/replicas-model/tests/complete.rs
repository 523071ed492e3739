//! Visits every state of the correct protocol.

use jindou_replicas_model::{Replicas, Watch, trimming::Trimming};
use stateright::{Checker, Model};
use std::hash::Hash;
use std::time::Instant;

fn all_states<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + std::fmt::Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + std::fmt::Debug + PartialEq,
{
    let begun = Instant::now();
    let checker = model.checker().spawn_bfs().join();
    println!(
        "{name}: {} states, {} steps between them, depth {}, {:.1} s",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64()
    );
    assert!(checker.is_done());
    checker.assert_properties();
}

fn servers(watch: Watch) {
    let model = Replicas {
        groups: 4,
        watch,
        planted: None,
    };
    all_states(&format!("{watch:?}"), model);
}

#[test]
fn an_update_in_four_groups() {
    servers(Watch::Update);
}

#[test]
fn evidence_of_four_groups() {
    servers(Watch::Evidence);
}

#[test]
fn a_strict_read_of_four_groups() {
    servers(Watch::Strict);
}

#[test]
fn a_server_while_the_log_is_trimmed() {
    let model = Trimming {
        groups: 4,
        planted: None,
    };
    all_states("Trimming", model);
}
