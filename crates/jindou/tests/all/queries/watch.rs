//! Compares the last state of a [`QueryWatch`] with the query's own profile.

use jindou::parse::Format;
use jindou::testing::source;
use jindou::{Database, ProfileNode, QueryOptions, QueryWatch, UpdateOptions};
use jindou_testing::{Rng, quads, query};

/// Names and rows of all nodes. Steps that no row reached are left out, since the profile has these only if a worker
/// ran them.
fn rows(node: &ProfileNode, out: &mut Vec<(String, Option<u64>, Option<u64>)>) {
    let (rows_in, rows_out) = (node.rows_in, node.rows_out);
    if !node.name.starts_with("step ") || rows_in != Some(0) || rows_out != Some(0) {
        out.push((node.name.clone(), rows_in, rows_out));
    }
    node.inputs.iter().for_each(|i| rows(i, out));
}

#[test]
fn the_last_look_is_the_profile() {
    let mut rng = Rng::new(19);
    let mut all = 0;
    for _ in 0..40 {
        let quads = quads(&mut rng);
        let text: String = quads.iter().map(|q| format!("{q} .\n")).collect();
        let source = source(&text, Format::NQuads);
        let db = Database::in_memory_from(&source, &UpdateOptions::default()).unwrap();
        for _ in 0..10 {
            let query = query(&mut rng, &quads);
            let watch = QueryWatch::default();
            let options = QueryOptions::default()
                .with_profile(true)
                .with_watch(watch.clone());
            let mut counted = jindou::results::Collector::new(jindou::MemoryBudget::unlimited());
            let Ok(report) = db.run(&query.text, &options, &mut counted) else {
                continue;
            };
            let (Some(profile), Some(tree)) = (report.profile_tree, watch.tree()) else {
                // There is no profile, because the planner found that the answer is empty.
                continue;
            };
            let (mut expected, mut seen) = (vec![], vec![]);
            rows(&profile, &mut expected);
            rows(&tree, &mut seen);
            assert!(watch.plan().is_some_and(|lines| !lines.is_empty()));
            all += 1;
            // The roots are not compared: one counts the rows of the sink, the other those of the topmost operator.
            assert_eq!(seen[1..], expected[1..], "{}", query.text);
        }
    }
    assert!(all > 200, "{all}");
}
