//! A branch of a UNION that needs no more rows ends its parts while the query continues.

use super::{FAR, wide_shards};
use jindou_engine::{ExecOptions, Hub, ShardMode, Sink};
use jindou_model::Result;
use std::time::{Duration, Instant};

/// A sink that, when rows of the second branch arrive, waits until the parts of the first branch have ended.
struct Watching {
    hub: Hub,
    /// Rows of the first branch, which binds `?d`.
    first: usize,
    second: usize,
    /// Largest number of parts that existed after such a wait.
    left: usize,
}

impl Sink for Watching {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let of_first = columns[0].iter().filter(|&&d| d != 0).count();
        self.first += of_first;
        self.second += rows - of_first;
        if of_first == 0 {
            let begun = Instant::now();
            while self.hub.parts() > 3 && begun.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.left = self.left.max(self.hub.parts());
        }
        Ok(())
    }
}

#[test]
fn a_branch_that_has_enough_ends_its_parts() {
    let (_, shards) = wide_shards(3);
    let pattern = FAR.split_once('*').unwrap().1;
    let query = format!(
        "PREFIX : <http://e/> SELECT ?d ?x {{ {{ SELECT ?d {pattern} LIMIT 3 }} UNION {{ ?x :p ?y . ?y :p ?z . ?z a :C2 }} }}"
    );
    let mut sink = Watching {
        hub: shards.hub.clone(),
        first: 0,
        second: 0,
        left: 0,
    };
    let plan = shards.plan(&query);
    shards
        .run(&plan, ShardMode::Fork, &ExecOptions::default(), &mut sink)
        .unwrap();
    assert_eq!(sink.first, 3);
    assert!(sink.second > 1000, "{}", sink.second);
    assert!(sink.left <= 3, "{} parts", sink.left);
    shards.is_left_clean();
}
