//! Remote lists over the in-memory transport, against brute force.

mod support;

use jindou_cluster::remote::{
    Access, Lists, Pattern, RemoteSnapshot, RemoteStore, StoreFiles, StoreServer,
};
use jindou_cluster::transport::memory::{Faults, Network};
use jindou_cluster::transport::{Epoch, Transport, TransportError};
use jindou_model::{Direction, PredicateId};
use jindou_store::Snapshot;
use jindou_store::segment::Scope;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use support::{IdQuad, Store, edited, edits, neighbours, store};

const WAIT: Duration = Duration::from_secs(1);

struct Served {
    network: Network,
    client: Arc<dyn Transport>,
    server: StoreServer,
    store: Store,
}

fn serve() -> Served {
    let store = store();
    let network = Network::new(1, Faults::default());
    let (server, client) = (network.node("s"), network.node("c"));
    let files = StoreFiles::open(&store.folder.path().join("store")).unwrap();
    let snapshot = Snapshot::of_base(Arc::clone(&store.base));
    let server = StoreServer::start(server, files, snapshot).unwrap();
    Served {
        network,
        client,
        server,
        store,
    }
}

impl Served {
    fn open(&self, epoch: u64, memory: u64) -> Result<Arc<RemoteStore>, TransportError> {
        let peer = self.client.connect("s", self.client.deadline(WAIT))?;
        RemoteStore::open(peer, Epoch(epoch), memory, self.client.deadline(WAIT))
    }

    fn patch(&self, count: u32, seed: u64) -> Vec<jindou_store::QuadEdit> {
        let edits = edits(&self.store, count, seed);
        let overlay = Arc::new(jindou_dictionary::DictionaryOverlay::tail());
        let base = Arc::clone(&self.store.base);
        self.server
            .publish(Snapshot::with_edits(base, count, &edits, overlay));
        edits
    }
}

/// Every key and some that are none, in both directions; gives how often each access happened.
fn agrees(
    s: &Served,
    remote: &RemoteSnapshot,
    truth: &BTreeSet<IdQuad>,
    scope: Scope<'_>,
) -> [u64; 3] {
    let mut costs = [0; 3];
    let sees = |g: u32| scope.sees(g);
    for p in 0..remote.store().predicates() {
        for direction in [Direction::Out, Direction::In] {
            let is_out = direction == Direction::Out;
            let quads: BTreeSet<IdQuad> = truth.iter().copied().filter(|q| q.1 == p).collect();
            let keys: Vec<u32> = (0..s.store.base.vertices() + 3).step_by(3).collect();
            let wanted: Vec<Vec<u32>> = keys
                .iter()
                .map(|&k| neighbours(&quads, p, is_out, k, sees))
                .collect();
            let (mut out, mut lists) = (vec![], Lists::default());
            let pattern = Pattern {
                predicate: PredicateId(p),
                direction,
                scope,
            };
            for (key, want) in keys.iter().zip(&wanted).step_by(5) {
                let deadline = s.client.deadline(WAIT);
                let access = remote
                    .neighbours(pattern, *key, &mut out, deadline)
                    .unwrap();
                assert_eq!(
                    &out, want,
                    "predicate {p} {direction:?} key {key} {scope:?}"
                );
                costs[access as usize] += 1;
                assert!(
                    access != Access::OneRead || !remote.is_dirty(PredicateId(p), direction, *key)
                );
            }
            let deadline = s.client.deadline(WAIT);
            remote
                .neighbours_many(pattern, &keys, &mut lists, deadline)
                .unwrap();
            for (i, want) in wanted.iter().enumerate() {
                assert_eq!(
                    lists.list(i),
                    want,
                    "predicate {p} {direction:?} key {} {scope:?}",
                    keys[i]
                );
            }
        }
    }
    costs
}

#[test]
fn lists_are_right_in_every_scope_and_one_read_in_the_default_graph() {
    let s = serve();
    let store = s.open(0, 1 << 30).unwrap();
    let remote = store.snapshot(s.client.deadline(WAIT)).unwrap();
    let [empty, reads, messages] = agrees(&s, &remote, &s.store.truth, Scope::Default);
    assert!(empty > 0 && reads > 0);
    assert_eq!(messages, 0);
    let graph = s.store.truth.iter().map(|q| q.3).find(|&g| g > 0).unwrap();
    let set = [0, graph];
    for scope in [
        Scope::Named(graph),
        Scope::AnyNamed,
        Scope::Union,
        Scope::Set(&set),
    ] {
        agrees(&s, &remote, &s.store.truth, scope);
    }
}

#[test]
fn dirty_keys_are_known_and_merged_and_old_snapshots_stay() {
    let s = serve();
    let store = s.open(0, 1 << 30).unwrap();
    let before = store.snapshot(s.client.deadline(WAIT)).unwrap();
    for (count, seed) in [(1, 1), (30, 2), (400, 3)] {
        let list = s.patch(count, seed);
        let remote = store.snapshot(s.client.deadline(WAIT)).unwrap();
        assert_eq!(remote.number(), count);
        let [_, reads, messages] =
            agrees(&s, &remote, &edited(&s.store, &list, count), Scope::Default);
        assert!(messages > 0 || count == 1);
        assert!(count > 30 || reads > messages);
        let now = edited(&s.store, &list, count);
        for e in &list {
            let quad = (e.subject, e.predicate, e.object, e.graph);
            if now.contains(&quad) == s.store.truth.contains(&quad) {
                // An edit that changed nothing, or one that a later one took back.
                continue;
            }
            assert!(remote.is_dirty(PredicateId(e.predicate), Direction::Out, e.subject));
            assert!(remote.is_dirty(PredicateId(e.predicate), Direction::In, e.object));
        }
        agrees(&s, &before, &s.store.truth, Scope::Default);
    }
}

#[test]
fn without_memory_for_summaries_every_list_is_a_message() {
    let s = serve();
    let store = s.open(0, 0).unwrap();
    let remote = store.snapshot(s.client.deadline(WAIT)).unwrap();
    let [_, reads, messages] = agrees(&s, &remote, &s.store.truth, Scope::Default);
    assert_eq!(reads, 0);
    assert!(messages > 0);
    assert_eq!(store.memory_used(), 0);
}

#[test]
fn a_new_epoch_refuses_the_old_store_and_serves_a_newly_opened_one() {
    let s = serve();
    let store = s.open(0, 1 << 30).unwrap();
    let old = store.snapshot(s.client.deadline(WAIT)).unwrap();
    agrees(&s, &old, &s.store.truth, Scope::Default);
    let retired = s.server.advance(Epoch(1)).unwrap();
    let stale = TransportError::StaleEpoch {
        held: Epoch(0),
        current: Epoch(1),
    };
    let &(subject, p, _, _) = s.store.truth.iter().find(|q| q.3 == 0).unwrap();
    let mut out = vec![];
    let pattern = Pattern {
        predicate: PredicateId(p),
        direction: Direction::Out,
        scope: Scope::Default,
    };
    let deadline = s.client.deadline(WAIT);
    let read = old.neighbours(pattern, subject, &mut out, deadline);
    assert_eq!(read.err(), Some(stale.clone()));
    assert_eq!(
        store.snapshot(s.client.deadline(WAIT)).err(),
        Some(stale.clone())
    );
    assert_eq!(s.open(0, 1 << 30).err(), Some(stale));
    let store = s.open(1, 1 << 30).unwrap();
    let new = store.snapshot(s.client.deadline(WAIT)).unwrap();
    agrees(&s, &new, &s.store.truth, Scope::Default);
    retired.release().unwrap();
    agrees(&s, &new, &s.store.truth, Scope::Default);
    s.network.crash("s");
    assert!(matches!(
        store.snapshot(s.client.deadline(WAIT)),
        Err(TransportError::PeerDead { .. })
    ));
}
