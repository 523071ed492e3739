//! Plans of the LUBM queries on LUBM(1): they have the shapes that the published performance relies on.

use jindou_model::Progress;
use jindou_plan::{PlanOptions, StartSource, StepKind, explain, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;

#[test]
fn lubm_plans_have_the_shapes_that_are_fast() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lubm");
    let options = LoadOptions::default().with_threads(2);
    load(&store, &Lubm::new(1, 0), &options, &Progress::default()).unwrap();
    let snapshot = Snapshot::of_base(open(&store).unwrap());
    for (i, query) in QUERIES.iter().enumerate() {
        let (i, text) = (i + 1, query.text);
        let p = plan(&parse(text).unwrap(), &snapshot, &PlanOptions::default()).unwrap();
        let words = explain(&p, &snapshot);
        let e = p.exploration().unwrap();
        if i == 3 {
            assert!(e.empty.is_some(), "no undergraduate has a degree: {words}");
            continue;
        }
        if i == 1 && e.empty.is_some() {
            // LUBM(1) has a single university, and no person in it has a degree from it.
            continue;
        }
        assert!(e.empty.is_none(), "q{i}: {words}");
        assert!(e.steps.len() <= 4, "q{i}: {words}");
        for step in &e.steps {
            if let StepKind::Check { list, .. } = &step.kind {
                assert_ne!(
                    Some(list.predicate.0),
                    snapshot.statistics().rdf_type,
                    "q{i}: classes are intervals: {words}"
                );
            }
        }
        let first = e.steps.first().map(|s| &s.kind);
        match i {
            // Two steps: all courses, then the single name of each.
            2 => {
                assert_eq!(e.steps.len(), 2, "{words}");
                assert!(
                    matches!(
                        first,
                        Some(StepKind::Start {
                            source: StartSource::IdFilter,
                            ..
                        })
                    ),
                    "{words}"
                );
                let rows = e.steps[0].rows as u64;
                assert_eq!(
                    Some(rows),
                    query.rows(1),
                    "the estimate is the published count: {words}"
                );
            }
            // These start from a constant and have a handful of rows in each step.
            4..=6 => assert!(e.steps.iter().all(|s| s.rows <= 50.0), "q{i}: {words}"),
            // The patterns form a triangle: the third edge is an intersection or a check, never a cross product.
            1 | 7 => {
                assert!(
                    !e.steps
                        .iter()
                        .any(|s| matches!(s.kind, StepKind::Cross { .. })),
                    "{words}"
                );
            }
            _ => {}
        }
    }
}
