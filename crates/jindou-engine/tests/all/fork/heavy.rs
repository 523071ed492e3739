//! Rows are sent to the shard with the list of a heavy key, since requesting the list costs more.

use super::{Shards, hashed};
use jindou_cluster::shards::ShardRequest;
use jindou_engine::{CollectSink, ExecOptions, ShardMode};
use jindou_model::Direction;
use jindou_testing::{named, triple};
use oxrdf::Quad;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of neighbours of the hub. Requesting their list takes longer than sending a message with rows and a report.
const HEAVY: usize = 60_000;

/// Two of twelve nodes are at a hub that many nodes are near; the other ten are at places that one node each is near.
/// The nodes that are near something have further edges (`next`).
fn data() -> Vec<Quad> {
    let mut all = Vec::new();
    let mut put = |s: String, p: &str, o: String| all.push(triple(&s, p, named(&o)));
    for i in 0..12 {
        let place = match i % 6 {
            0 => "hub".to_owned(),
            _ => format!("place{i}"),
        };
        put("all".to_owned(), "has", format!("n{i}"));
        put(format!("n{i}"), "at", place);
    }
    for i in 0..HEAVY {
        put(format!("x{i}"), "near", "hub".to_owned());
        put(format!("x{i}"), "next", format!("x{}", (i + 1) % HEAVY));
    }
    for i in 0..70_000 {
        put(format!("y{i}"), "near", format!("place{i}"));
        put(format!("y{i}"), "next", format!("y{}", (i + 1) % 70_000));
    }
    all
}

#[test]
fn rows_go_to_the_list_of_a_heavy_key() {
    let data = data();
    let shards = Shards::new(&data, hashed(3), 1, 2);
    let hub = shards.snapshot.lookup(b"<http://e/hub").unwrap().0;
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    shards.watch(move |requests| {
        for (_, request) in requests {
            if let ShardRequest::Lists {
                keys, direction, ..
            } = request
            {
                let is_heavy = *direction == Direction::In && keys.contains(&hub);
                seen.fetch_add(usize::from(is_heavy), Ordering::SeqCst);
            }
        }
        Ok(())
    });
    // There are many steps, so that it is worth running them at the shards although few rows are expected.
    let plan = shards.plan(
        "PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) { :all :has ?a . ?a :at ?h . ?x :near ?h . ?x :next ?b . ?b :next ?c . \
         ?c :next ?d . ?d :next ?e . ?e :next ?f . ?f :next ?g . ?g :next ?i . ?i :next ?j . ?j :next ?k }",
    );
    let ran = |mode| {
        asked.store(0, Ordering::SeqCst);
        let mut sink = CollectSink::default();
        let options = ExecOptions::default();
        shards.run(&plan, mode, &options, &mut sink).unwrap();
        (asked.load(Ordering::SeqCst), sink.rows)
    };
    let in_place = ran(ShardMode::InPlace);
    assert!(in_place.0 > 0);
    // On a busy machine messages may seem so slow that requesting the list is better. Short lists would always be
    // requested.
    let dynamic = (0..50)
        .map(|_| ran(ShardMode::Dynamic))
        .find(|d| d.0 == 0)
        .expect("rows are sent once messages are quick");
    assert_eq!([in_place.1, dynamic.1], [1, 1]);
    shards.is_left_clean();
}
