//! After a merge, only the server that owns a new term has its text.

use crate::replicas::{LOADED, merge, quads, turtle, wait};
use crate::shard_servers::Servers;
use jindou::{Database, UpdateOptions};
use jindou_model::{FIRST_TAIL_ID, VertexId};
use jindou_store::shard::shard_folder;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

const SHARDS: u32 = 4;
/// Number of labelled vertices: with their labels, more new terms than four shards own at a time.
const LABELLED: usize = 3000;
const LABEL: &str = "<http://www.w3.org/2000/01/rdf-schema#label>";

/// The shards of a server, as [`Servers::start`] distributes them with one replica.
fn shards_of(server: u32) -> Vec<u32> {
    (0..SHARDS).filter(|s| s % 3 == server).collect()
}

fn labels(numbers: std::ops::Range<usize>, word: &str) -> String {
    let mut data = String::new();
    for n in numbers {
        let _ = writeln!(data, "<http://e/n{n}> {LABEL} \"{word}{n} zanzibar\" .");
    }
    data
}

fn update(server: &Database, oracle: &Database, text: &str) -> [u64; 2] {
    wait(server);
    let options = UpdateOptions::default();
    let [got, want] = [server, oracle].map(|db| {
        let report = db.update(text, &options).unwrap();
        [report.added, report.removed]
    });
    assert_eq!(got, want, "{}", &text[..text.len().min(200)]);
    got
}

fn until(what: &str, is_done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Merges, until all servers use the base.
fn merge_all(servers: &Servers) {
    let before = servers.of(0).snapshot().base().number();
    merge(servers.of(0)).unwrap();
    for server in servers.all() {
        until("not merged", || server.snapshot().base().number() > before);
        wait(server);
    }
}

/// Occurrences of a word in the files of the terms that updates added.
fn occurrences(servers: &Servers, server: u32, shard: u32, word: &str) -> usize {
    let folder = servers.folder(server).join(shard_folder(shard));
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().ends_with("-delta.jd") {
            let bytes = std::fs::read(entry.path()).unwrap();
            let is_word = |w: &&[u8]| *w == word.as_bytes();
            found += bytes.windows(word.len()).filter(is_word).count();
        }
    }
    found
}

/// Memory and files have the text of the terms that the server owns or that all keep, and of no others.
fn check_texts(servers: &Servers) {
    for (number, server) in (0..).zip(servers.all()) {
        let (snapshot, held) = (server.snapshot(), shards_of(number));
        let tail = snapshot.tail();
        let mut texts = vec![0; SHARDS as usize];
        for n in 0..tail.len() {
            let id = VertexId(FIRST_TAIL_ID + n);
            let owner = (n >> 10) % SHARDS;
            let is_kept = held.contains(&owner) || tail.shared().any(|s| s == n);
            let text = tail.term(id);
            assert_eq!(text.is_some(), is_kept && tail.is_assigned(id), "{n}");
            let has_word = text.is_some_and(|t| t.windows(8).any(|w| w == b"zanzibar"));
            texts[owner as usize] += usize::from(has_word);
        }
        assert!(tail.elsewhere_count() > tail.len() / 4);
        for shard in held {
            let found = occurrences(servers, number, shard, "zanzibar");
            assert_eq!(found, texts[shard as usize], "shard {shard}");
        }
    }
}

/// Each server finds subjects by their labels, and labels by their subjects.
fn check_queries(servers: &Servers, oracle: &Database, numbers: &[usize]) {
    for server in servers.all() {
        wait(server);
        for n in numbers {
            for word in ["quagga", "okapi"] {
                let text = format!(
                    "SELECT ?s {{ VALUES ?s {{ <http://e/n3> <http://e/n{n}> }} ?s {LABEL} ?l \
                     FILTER(?l = \"{word}{n} zanzibar\") }}"
                );
                let exact = format!("SELECT ?s {{ ?s {LABEL} \"{word}{n} zanzibar\" }}");
                let label = format!("SELECT ?l {{ <http://e/n{n}> {LABEL} ?l }}");
                for text in [&text, &exact, &label] {
                    let rows = |db: &Database| format!("{:?}", db.query(text).unwrap().solutions());
                    assert_eq!(rows(server), rows(oracle), "{text}");
                }
                check_search(server, oracle, &format!("{word}{n} zanzibar"));
            }
        }
    }
    assert_eq!(quads(servers.of(0)), quads(oracle));
}

#[cfg(feature = "text")]
fn check_search(server: &Database, oracle: &Database, words: &str) {
    let found = |db: &Database| {
        let asked = jindou::search::Search::new(words).with_patience(Duration::from_secs(60));
        let found = db.search(&asked).unwrap().found;
        found.into_iter().map(|f| f.iri).collect::<Vec<_>>()
    };
    assert_eq!(found(server), found(oracle), "{words}");
}

#[cfg(not(feature = "text"))]
fn check_search(_: &Database, _: &Database, _: &str) {}

#[test]
fn the_text_of_merged_terms_is_at_their_owners() {
    let oracle = Database::in_memory_from(&turtle(LOADED), &UpdateOptions::default()).unwrap();
    let mut servers = Servers::start(LOADED, SHARDS, 3, 1);
    let in_use = [3, 700, 2100, LABELLED - 1];
    let inserted = labels(0..LABELLED, "quagga");
    let data = format!(
        "INSERT DATA {{ {inserted} <http://e/n0> a <http://e/Class> . GRAPH <http://e/graph> {{ <http://e/n1> <http://e/p> 1 }} }}"
    );
    update(servers.of(1), &oracle, &data);
    let text = format!("SELECT ?s ?l {{ ?s {LABEL} ?l }}");
    let mut cursor = servers.of(1).cursor(&text, &Default::default()).unwrap();
    let mut rows = cursor.next_batch().unwrap().map_or(0, |batch| batch.rows());
    let before = servers.of(1).snapshot();
    merge_all(&servers);
    check_texts(&servers);
    check_queries(&servers, &oracle, &in_use);
    // Terms that all servers keep.
    for server in servers.all() {
        let shared: Vec<u32> = server.snapshot().tail().shared().collect();
        assert_eq!(shared.len(), 3, "a predicate, a class, a graph");
    }
    // Terms that are elsewhere are found by updates, and get no other id.
    let ids = servers.of(2).snapshot().tail().len();
    for server in 0..3 {
        let server = servers.of(server);
        assert_eq!(update(server, &oracle, &data), [0, 0]);
        let known = "<http://e/n5> <http://e/knows> <http://e/n2500>";
        update(server, &oracle, &format!("INSERT DATA {{ {known} }}"));
        update(server, &oracle, &format!("DELETE DATA {{ {known} }}"));
    }
    assert_eq!(
        servers.of(2).snapshot().tail().len(),
        ids + 1,
        "one predicate"
    );
    // Freed and assigned again, with the same text and with others.
    let gone = labels(500..2500, "quagga");
    update(servers.of(2), &oracle, &format!("DELETE DATA {{ {gone} }}"));
    merge_all(&servers);
    let free = |server: &Database| server.snapshot().tail().free_count();
    for server in servers.all() {
        until("nothing is free", || free(server) >= 4000);
    }
    check_queries(&servers, &oracle, &in_use);
    let free_before = free(servers.of(0));
    for (server, numbers, word) in [(0, 500..900, "okapi"), (1, 1400..2400, "quagga")] {
        let data = labels(numbers, word);
        update(
            servers.of(server),
            &oracle,
            &format!("INSERT DATA {{ {data} }}"),
        );
    }
    for server in servers.all() {
        wait(server);
        assert_eq!(server.snapshot().tail().len(), ids + 1);
        assert_eq!(free(server), free_before - 2800);
    }
    check_queries(&servers, &oracle, &in_use);
    merge_all(&servers);
    check_texts(&servers);
    check_queries(&servers, &oracle, &in_use);
    servers.stop(1);
    servers.start_again(1);
    wait(servers.of(1));
    check_texts(&servers);
    check_queries(&servers, &oracle, &in_use);
    // The cursor and the snapshot are from before all merges.
    while let Some(batch) = cursor.next_batch().unwrap() {
        rows += batch.rows();
    }
    assert_eq!(rows, LABELLED);
    let texts = (0..before.tail().len()).map(|n| before.tail().term(VertexId(FIRST_TAIL_ID + n)));
    assert!(texts.into_iter().all(|text| text.is_some()));
}
