//! The in-memory transport: faults follow from the seed, deadlines hold, epochs fence.

use jindou_cluster::transport::memory::{Network, NetworkFaults};
use jindou_cluster::transport::{
    ByteRange, Epoch, Message, Peer, RemoteRegion, Transport, TransportError,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn faulty() -> NetworkFaults {
    NetworkFaults {
        delay_min: Duration::from_micros(10),
        delay_max: Duration::from_micros(900),
        drop_permille: 150,
        notice: None,
    }
}

struct Pair {
    server: Arc<dyn Transport>,
    client: Arc<dyn Transport>,
    peer: Arc<dyn Peer>,
    region: RemoteRegion,
    heard: Arc<Mutex<Vec<u8>>>,
}

/// A server with 4 KiB that anyone may read and a handler that records one-way messages.
fn pair(network: &Network) -> Pair {
    let (server, client) = (network.node("s"), network.node("c"));
    let data: Vec<u8> = (0..4096).map(|i| i as u8).collect();
    let descriptor = server.register(Arc::new(data)).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&heard);
    let handler = move |m: &Message<'_>, reply: &mut Vec<u8>| {
        notes.lock().unwrap().extend_from_slice(m.payload);
        reply.extend_from_slice(m.payload);
        Ok(())
    };
    server.handle(1, Arc::new(handler)).unwrap();
    let peer = client.connect("s", client.deadline(MS)).unwrap();
    let region = peer.attach(&descriptor).unwrap();
    Pair {
        server,
        client,
        peer,
        region,
        heard,
    }
}

fn read(p: &Pair, wait: Duration) -> Result<[u8; 8], TransportError> {
    let mut into = [0; 8];
    let ranges = [
        ByteRange { offset: 16, len: 4 },
        ByteRange {
            offset: 300,
            len: 4,
        },
    ];
    p.peer
        .read_many(p.region, &ranges, &mut into, p.client.deadline(wait))?;
    Ok(into)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let network = Network::new(seed, faulty());
        let p = pair(&network);
        let mut outcomes = Vec::new();
        for i in 0..200u8 {
            outcomes.push(read(&p, MS).map(|b| b.to_vec()));
            let mut reply = Vec::new();
            let called = p
                .peer
                .call(1, Epoch(0), &[i], &mut reply, p.client.deadline(MS));
            outcomes.push(called.map(|()| reply));
            p.peer
                .send(1, Epoch(0), &[i], p.client.deadline(MS))
                .unwrap();
        }
        let heard = p.heard.lock().unwrap().clone();
        (outcomes, heard, network.trace())
    };
    let first = run(5);
    assert_eq!(first, run(5));
    assert_ne!(first.2, run(6).2);
    // Faults did occur, and not only faults.
    assert!(first.0.iter().any(Result::is_err) && first.0.iter().any(Result::is_ok));
}

#[test]
fn every_operation_ends_by_its_deadline() {
    for seed in 0..200 {
        let network = Network::new(seed, faulty());
        let p = pair(&network);
        for _ in 0..20 {
            let start = p.client.now();
            match read(&p, MS) {
                Ok(bytes) => assert_eq!(bytes, [16, 17, 18, 19, 44, 45, 46, 47]),
                Err(TransportError::Deadline { waited, .. }) => assert_eq!(waited, MS),
                Err(e) => panic!("{e}"),
            }
            assert!(p.client.now().since(start) <= MS);
        }
    }
}

#[test]
fn one_way_messages_are_reordered_and_lost() {
    let network = Network::new(3, faulty());
    let p = pair(&network);
    for i in 0..100 {
        p.peer
            .send(1, Epoch(0), &[i], p.client.deadline(MS))
            .unwrap();
    }
    network.run(5 * MS);
    let heard = p.heard.lock().unwrap().clone();
    assert!(heard.len() < 100 && heard.len() > 50);
    assert!(!heard.is_sorted());
}

#[test]
fn a_noticed_crash_is_a_dead_peer_and_a_silent_one_a_deadline() {
    let network = Network::new(1, NetworkFaults::default());
    let p = pair(&network);
    read(&p, MS).unwrap();
    network.crash("s");
    let e = read(&p, Duration::from_secs(1)).unwrap_err();
    assert!(matches!(e, TransportError::PeerDead { .. }), "{e}");
    assert!(p.peer.failure().is_some());
    assert!(
        p.client.now().0 < 100 * MS,
        "noticed long before the deadline"
    );

    for cut in [false, true] {
        let silent = Network::new(
            1,
            NetworkFaults {
                notice: None,
                ..NetworkFaults::default()
            },
        );
        let p = pair(&silent);
        if cut {
            silent.cut("s", "c", true)
        } else {
            silent.stop("s", true)
        }
        let e = read(&p, 7 * MS).unwrap_err();
        let want = TransportError::Deadline {
            peer: "s".into(),
            waited: 7 * MS,
        };
        assert_eq!(e, want);
        silent.stop("s", false);
        silent.cut("s", "c", false);
        read(&p, 7 * MS).unwrap();
    }
}

#[test]
fn a_stale_epoch_is_refused_and_so_is_what_makes_no_sense() {
    let network = Network::new(1, NetworkFaults::default());
    let p = pair(&network);
    p.server.advance(Epoch(4)).unwrap();
    let stale = TransportError::StaleEpoch {
        held: Epoch(0),
        current: Epoch(4),
    };
    assert_eq!(read(&p, MS), Err(stale.clone()));
    let deadline = p.client.deadline(MS);
    assert_eq!(
        p.peer.call(1, Epoch(0), &[], &mut vec![], deadline),
        Err(stale)
    );
    p.peer
        .call(1, Epoch(4), &[], &mut vec![], p.client.deadline(MS))
        .unwrap();
    // A one-way message of an old epoch is dropped.
    p.peer.send(1, Epoch(0), &[9], deadline).unwrap();
    network.run(MS);
    assert!(p.heard.lock().unwrap().is_empty());
    assert!(p.server.advance(Epoch(3)).is_err());

    let again = p.server.register(Arc::new(vec![1u8; 10])).unwrap();
    let region = p.peer.attach(&again).unwrap();
    for (offset, len, room) in [(8, 4, 4), (0, 4, 3), (u64::MAX, 4, 4)] {
        let mut into = vec![0; room];
        let range = [ByteRange { offset, len }];
        let e = p
            .peer
            .read_many(region, &range, &mut into, p.client.deadline(MS));
        assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");
    }
    p.server.release(again.region).unwrap();
    let mut into = [0; 4];
    let e = p.peer.read_many(
        region,
        &[ByteRange { offset: 0, len: 4 }],
        &mut into,
        p.client.deadline(MS),
    );
    assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");
    assert!(
        p.server
            .handle(1, Arc::new(|_: &Message<'_>, _: &mut Vec<u8>| Ok(())))
            .is_err()
    );
    p.client.close();
    assert_eq!(read(&p, MS), Err(TransportError::Closed));
}
