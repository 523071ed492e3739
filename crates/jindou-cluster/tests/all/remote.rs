//! Lists read from another server's memory, over the in-memory transport, against brute force.

use crate::support::{IdQuad, Store, named_edges, neighbours, store};
use jindou_cluster::remote::{Exposed, RemoteStore, StoreFiles};
use jindou_cluster::transport::memory::{Network, NetworkFaults};
use jindou_cluster::transport::{Epoch, Transport, TransportError};
use jindou_model::{Direction, PredicateId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(1);
/// More neighbours than any list here has.
const MANY: u32 = 1 << 20;

struct Served {
    network: Network,
    server: Arc<dyn Transport>,
    client: Arc<dyn Transport>,
    exposed: Exposed,
    store: Store,
}

fn serve() -> Served {
    let store = store();
    let network = Network::new(1, NetworkFaults::default());
    let (server, client) = (network.node("s"), network.node("c"));
    let files = StoreFiles::open(&store.folder.path().join("store")).unwrap();
    let exposed = Exposed::new(files, &named_edges(&store.base));
    Served {
        network,
        server,
        client,
        exposed,
        store,
    }
}

impl Served {
    fn catalogue(&self) -> Vec<u8> {
        self.exposed.register(&*self.server).unwrap().0
    }

    fn open(&self, catalogue: &[u8], memory: u64) -> Result<RemoteStore, TransportError> {
        let peer = self.client.connect("s", self.client.deadline(WAIT))?;
        RemoteStore::of_catalogue(peer, catalogue, |_| memory, self.client.deadline(WAIT))
    }

    /// The lists of some keys, or `None` if they have to be requested.
    fn lists(
        &self,
        remote: &RemoteStore,
        (p, direction): (u32, Direction),
        keys: &[u32],
        most: u32,
    ) -> Result<Option<Vec<Vec<u32>>>, TransportError> {
        let (mut ends, mut values) = (vec![], vec![]);
        let deadline = self.client.deadline(WAIT);
        let of = (PredicateId(p), direction);
        if !remote.lists(of, keys, most, (&mut ends, &mut values), deadline)? {
            assert!(ends.is_empty() && values.is_empty());
            return Ok(None);
        }
        assert_eq!(ends.len(), keys.len());
        let mut start = 0;
        let list = |&end: &u32| {
            let list = values[start..end as usize].to_vec();
            start = end as usize;
            list
        };
        Ok(Some(ends.iter().map(list).collect()))
    }

    /// Every third id, some of which are not keys, in both directions of every predicate. Returns the neighbours read.
    fn agrees(&self, remote: &RemoteStore) -> usize {
        let truth = &self.store.truth;
        let mut read = 0;
        for p in 0..remote.predicates() {
            let quads: BTreeSet<IdQuad> = truth.iter().copied().filter(|q| q.1 == p).collect();
            for direction in [Direction::Out, Direction::In] {
                let of = |k| neighbours(&quads, p, direction == Direction::Out, k);
                let keys: Vec<u32> = (0..self.store.base.vertices() + 3).step_by(3).collect();
                let wanted: Vec<Vec<u32>> = keys.iter().map(|&k| of(k)).collect();
                let got = self.lists(remote, (p, direction), &keys, MANY).unwrap();
                assert_eq!(got.as_ref(), Some(&wanted), "predicate {p} {direction:?}");
                for (key, want) in keys.iter().zip(&wanted).step_by(5) {
                    let got = self.lists(remote, (p, direction), &[*key], MANY).unwrap();
                    assert_eq!(
                        got.as_deref(),
                        Some(&[want.clone()][..]),
                        "predicate {p} {direction:?} key {key}"
                    );
                }
                let all: usize = wanted.iter().map(Vec::len).sum();
                if all > 1 {
                    let fewer = all as u32 - 1;
                    let got = self.lists(remote, (p, direction), &keys, fewer).unwrap();
                    assert_eq!(got, None, "more than {fewer} neighbours are asked for");
                }
                read += all;
                let deadline = self.client.deadline(WAIT);
                let degrees = remote.degrees((PredicateId(p), direction), &keys, deadline);
                let is_named = truth.iter().any(|q| q.1 == p && q.3 > 0);
                let lengths = wanted.iter().map(|l| l.len() as u64).collect();
                assert_eq!(degrees.unwrap(), (!is_named).then_some(lengths));
            }
        }
        read
    }
}

#[test]
fn lists_and_degrees_of_the_default_graph_are_right() {
    let s = serve();
    let remote = s.open(&s.catalogue(), 1 << 30).unwrap();
    assert!(s.agrees(&remote) > 1000);
    assert!(remote.memory_used() > 0 && remote.memory_used() <= s.exposed.summary_bytes());
}

#[test]
fn without_memory_for_summaries_every_list_is_asked_for() {
    let s = serve();
    let remote = s.open(&s.catalogue(), 0).unwrap();
    let mut asked = 0;
    for p in 0..remote.predicates() {
        for direction in [Direction::Out, Direction::In] {
            let lists = s.lists(&remote, (p, direction), &[1, 2, 3], MANY).unwrap();
            let has_edges = s.store.truth.iter().any(|q| q.1 == p && q.3 == 0);
            assert_eq!(lists.is_none(), has_edges);
            asked += usize::from(has_edges);
        }
    }
    assert!(asked > 8);
    assert_eq!(remote.memory_used(), 0);
}

#[test]
fn a_damaged_catalogue_is_refused_or_gives_an_error() {
    let s = serve();
    let whole = s.catalogue();
    for length in 0..whole.len() {
        assert!(s.open(&whole[..length], 1 << 30).is_err(), "{length} bytes");
    }
}

#[test]
fn a_new_epoch_refuses_the_old_store_and_serves_a_newly_opened_one() {
    let s = serve();
    let old_catalogue = s.catalogue();
    let old = s.open(&old_catalogue, 1 << 30).unwrap();
    s.agrees(&old);
    s.server.advance(Epoch(1)).unwrap();
    let new_catalogue = s.catalogue();
    let stale = TransportError::StaleEpoch {
        held: Epoch(0),
        current: Epoch(1),
    };
    let &(subject, p, _, _) = s.store.truth.iter().find(|q| q.3 == 0).unwrap();
    let read = s.lists(&old, (p, Direction::Out), &[subject], MANY);
    assert_eq!(read, Err(stale.clone()));
    assert_eq!(s.open(&old_catalogue, 1 << 30).err(), Some(stale));
    let new = s.open(&new_catalogue, 1 << 30).unwrap();
    s.agrees(&new);
    s.network.crash("s");
    let read = s.lists(&new, (p, Direction::Out), &[subject], MANY);
    assert!(matches!(read, Err(TransportError::PeerDead { .. })));
}
