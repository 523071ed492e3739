//! Updates and merges of servers that each have some shards of one store: requests for what other servers have.

use crate::replicas::{self, turtle};
use crate::shard_servers::Servers;
use jindou::replica::HeldShards;
use jindou::{Database, UpdateOptions};
use jindou_store::directory::NEXT_MANIFEST;
use jindou_store::shard::shard_folder;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Messages with requests that the servers sent one another.
fn messages(servers: &Servers) -> u64 {
    let of = |server: &Database| server.replica().unwrap().shard_figures();
    let all = servers.all().flat_map(of);
    all.map(|figures| figures.asked.requests).sum()
}

/// Updates that wait look terms and quads of other shards up together, and what is known of a base is not asked again.
#[test]
fn updates_share_their_lookups() {
    let mut text = String::new();
    for n in 0..100 {
        let _ = writeln!(text, "<http://e/v{n}> <http://e/p> <http://e/v{}> .", n * 7);
    }
    let oracle = Database::in_memory_from(&turtle(&text), &UpdateOptions::default()).unwrap();
    let servers = Servers::start(&text, 6, 3, 1);
    // One removes an edge and adds others, the other one reverses that.
    let updates = |client: u32| {
        let quads = [
            format!(
                "<http://e/v{client}> <http://e/p> <http://e/v{}>",
                client * 7
            ),
            format!("<http://e/v{client}> <http://e/p> <http://e/new{client}>"),
            format!("GRAPH <http://e/v1> {{ <http://e/v{client}> <http://e/p> {client} }}"),
        ];
        let [old, new, graph] = quads;
        [
            format!("DELETE DATA {{ {old} }} ; INSERT DATA {{ {new} . {graph} }}"),
            format!("INSERT DATA {{ {old} }} ; DELETE DATA {{ {new} . {graph} }}"),
        ]
    };
    let round = |which: usize| {
        let before = messages(&servers);
        std::thread::scope(|scope| {
            for client in 0..32 {
                let server = servers.of(client % 3);
                let updates = &updates;
                scope.spawn(move || {
                    let update = &updates(client as u32)[which];
                    server.update(update, &UpdateOptions::default()).unwrap()
                });
            }
        });
        messages(&servers) - before
    };
    let updated = |which: usize| {
        for client in 0..32 {
            let update = &updates(client)[which];
            oracle.update(update, &UpdateOptions::default()).unwrap();
        }
        servers.assert_are(&oracle, "updated");
    };
    println!("{} messages for 32 updates at once", round(0));
    updated(0);
    // Once the server that evaluates them knows all answers, it asks no more; another one may take over meanwhile.
    for _ in 0..5 {
        let sent = [1, 0].map(|which| {
            let sent = round(which);
            updated(which);
            sent
        });
        if sent == [0, 0] {
            return;
        }
    }
    panic!("lookups are repeated");
}

/// A merge that is started while a shard has no holder waits for one, at all servers. The store has no types, so each
/// server asks all shards whether rdf:type has an id.
#[test]
fn a_merge_waits_for_holders() {
    let text = "<http://e/a> <http://e/p> <http://e/b> . <http://e/b> <http://e/p> <http://e/c> .";
    let insert = "INSERT DATA { <http://e/b> <http://e/q> <http://e/a> , <http://e/d> }";
    let oracle = Database::in_memory_from(&turtle(text), &UpdateOptions::default()).unwrap();
    let mut servers = Servers::start(text, 6, 3, 1);
    for store in [servers.of(0), &oracle] {
        store.update(insert, &UpdateOptions::default()).unwrap();
    }
    servers.stop(2);
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| replicas::merge(servers.of(0)));
        // Longer than a request waits for a holder.
        std::thread::sleep(Duration::from_secs(4));
        assert!(!merge.is_finished());
        let ended = |n| servers.of(n).replica().unwrap().ended();
        assert!(ended(0).is_none() && ended(1).is_none());
        let third = servers.joined(2, HeldShards::InFolder);
        merge.join().unwrap().unwrap();
        for server in [servers.of(0), servers.of(1), &third] {
            assert_eq!(replicas::quads(server), replicas::quads(&oracle));
        }
    });
}

/// A merge that one server's disk refuses is tried again there. Until then the old base is used.
#[test]
fn a_merge_is_tried_again_until_the_disk_takes_it() {
    let text = "<http://e/a> <http://e/p> <http://e/b> . <http://e/b> <http://e/p> <http://e/c> .";
    let insert = "INSERT DATA { <http://e/b> <http://e/q> <http://e/a> , <http://e/d> }";
    let oracle = Database::in_memory_from(&turtle(text), &UpdateOptions::default()).unwrap();
    let servers = Servers::start(text, 6, 3, 2);
    for store in [servers.of(0), &oracle] {
        store.update(insert, &UpdateOptions::default()).unwrap();
    }
    // The file that completes the merge cannot be put in place.
    let obstacle = servers.folder(0).join(shard_folder(0)).join(NEXT_MANIFEST);
    std::fs::create_dir(&obstacle).unwrap();
    let refused = replicas::merge(servers.of(0)).unwrap_err();
    assert!(refused.to_string().contains(NEXT_MANIFEST), "{refused}");
    let agree = || {
        for server in servers.all() {
            assert!(server.replica().unwrap().ended().is_none());
            assert_eq!(replicas::quads(server), replicas::quads(&oracle));
        }
    };
    agree();
    std::fs::remove_dir(&obstacle).unwrap();
    let begun = Instant::now();
    while servers
        .all()
        .any(|server| server.snapshot().base().number() == 0)
    {
        assert!(begun.elapsed() < Duration::from_secs(60), "not merged");
        std::thread::sleep(Duration::from_millis(20));
    }
    agree();
}
