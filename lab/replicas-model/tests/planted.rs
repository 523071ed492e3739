//! Checks that each planted mistake breaks the expected property.

use jindou_replicas_model::{
    EVIDENCE, IN_ORDER, NOT_DONE, NOT_LOST, ONCE, ONE_CONTENT, Planted, Replicas, SEEN, STRICT,
    Watch,
    trimming::{Mistake, RIGHT, TRUE_EVIDENCE, Trimming},
};
use stateright::{Checker, HasDiscoveries, Model};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

/// Checks that the model finds, for each property, a sequence of steps that breaks it.
fn finds(planted: Planted, watch: Watch, properties: &[&'static str]) {
    let model = Replicas {
        groups: 4,
        watch,
        planted: Some(planted),
    };
    for property in properties {
        breaks(&format!("{planted:?}"), model, property);
    }
}

fn breaks<M>(mistake: &str, model: M, property: &'static str)
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let wanted = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = model.clone().checker().finish_when(wanted).spawn_bfs();
    let checker = checker.join();
    let states = checker.unique_state_count();
    let path = checker.discovery(property);
    let path = path.unwrap_or_else(|| panic!("{mistake} keeps \"{property}\" in {states} states"));
    // The path may continue after the first state that breaks the property.
    let watched = model.properties().into_iter();
    let holds = watched.filter(|p| p.name == property).map(|p| p.condition);
    let holds = holds.reduce(|first, _| first);
    let holds = holds.expect("the property is the model's");
    let steps = path.into_vec().into_iter();
    let steps: Vec<_> = (steps.take_while(|(state, _)| holds(&model, state)))
        .filter_map(|(_, action)| action)
        .collect();
    println!("{mistake} breaks \"{property}\" ({states} states): {steps:?}");
}

#[test]
fn next_number_after_an_unknown_put() {
    finds(
        Planted::NextNumberAfterUnknown,
        Watch::Update,
        &[ONCE, ONE_CONTENT],
    );
}

#[test]
fn an_unknown_put_told_as_not_done() {
    finds(Planted::UnknownIsNotDone, Watch::Update, &[NOT_DONE]);
}

#[test]
fn acknowledged_before_others_have_heard() {
    finds(Planted::AcknowledgedUnconfirmed, Watch::Update, &[SEEN]);
}

#[test]
fn a_strict_read_that_looks_before_it_is_asked() {
    finds(Planted::StrictUsesEarlierListing, Watch::Strict, &[STRICT]);
}

#[test]
fn a_taken_name_taken_for_ours() {
    finds(
        Planted::ExistsIsOurs,
        Watch::Update,
        &[ONE_CONTENT, NOT_LOST],
    );
}

#[test]
fn a_proposed_group_that_others_read() {
    finds(
        Planted::ProposedIsRead,
        Watch::Update,
        &[ONE_CONTENT, NOT_LOST],
    );
}

#[test]
fn requests_that_are_forgotten() {
    finds(Planted::RequestsForgotten, Watch::Update, &[ONCE]);
    finds(Planted::RequestsForgottenByCrash, Watch::Update, &[ONCE]);
}

#[test]
fn a_group_that_is_not_evaluated_again() {
    finds(Planted::NotEvaluatedAgain, Watch::Update, &[IN_ORDER, ONCE]);
}

#[test]
fn reads_that_do_not_wait_for_what_was_heard_of() {
    finds(Planted::ReadsIgnoreKnownGroups, Watch::Update, &[SEEN]);
}

#[test]
fn evidence_that_counts_from_its_arrival() {
    finds(
        Planted::HeartbeatFreshOnArrival,
        Watch::Evidence,
        &[EVIDENCE],
    );
    finds(Planted::ListingsAreFresh, Watch::Evidence, &[EVIDENCE]);
}

#[test]
fn a_server_s_own_failure_told_as_not_done() {
    finds(Planted::RefusedHere, Watch::Update, &[NOT_DONE]);
}

#[test]
fn answers_about_trimmed_names_that_count() {
    let mistakes = [
        (Mistake::NoProof, RIGHT),
        (Mistake::ReadWithoutProof, RIGHT),
        (Mistake::TrimsBelowNewest, RIGHT),
        (Mistake::TrimsBelowNewest, TRUE_EVIDENCE),
        (Mistake::TrimsTheYoung, RIGHT),
        (Mistake::ValidatedBefore, RIGHT),
        (Mistake::OldBases, RIGHT),
    ];
    for (mistake, property) in mistakes {
        let model = Trimming {
            groups: 4,
            planted: Some(mistake),
        };
        breaks(&format!("{mistake:?}"), model, property);
    }
}
