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

/// Checks that the model finds a sequence of steps that breaks the property.
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
fn mistakes_break_their_properties() {
    use Planted::*;
    let mistakes: [(Planted, Watch, &[&'static str]); 13] = [
        (NextNumberAfterUnknown, Watch::Update, &[ONCE, ONE_CONTENT]),
        (UnknownIsNotDone, Watch::Update, &[NOT_DONE]),
        (AcknowledgedUnconfirmed, Watch::Update, &[SEEN]),
        (StrictUsesEarlierListing, Watch::Strict, &[STRICT]),
        (ExistsIsOurs, Watch::Update, &[ONE_CONTENT, NOT_LOST]),
        (ProposedIsRead, Watch::Update, &[ONE_CONTENT, NOT_LOST]),
        (RequestsForgotten, Watch::Update, &[ONCE]),
        (RequestsForgottenByCrash, Watch::Update, &[ONCE]),
        (NotEvaluatedAgain, Watch::Update, &[IN_ORDER, ONCE]),
        (ReadsIgnoreKnownGroups, Watch::Update, &[SEEN]),
        (HeartbeatFreshOnArrival, Watch::Evidence, &[EVIDENCE]),
        (ListingsAreFresh, Watch::Evidence, &[EVIDENCE]),
        (RefusedHere, Watch::Update, &[NOT_DONE]),
    ];
    for (planted, watch, properties) in mistakes {
        let model = Replicas {
            groups: 4,
            watch,
            planted: Some(planted),
        };
        for property in properties {
            breaks(&format!("{planted:?}"), model, property);
        }
    }
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
