//! Reads over UCX between two ends, over TCP on loopback.

use jindou_cluster::transport::ucx::{UcxTransport, available};
use jindou_cluster::transport::{ByteRange, Link, RemoteRegion, Transport, TransportError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A wait that only a fault makes this long, even on a busy machine.
const WAIT: Duration = Duration::from_secs(20);

/// False, with a message, if UCX is not installed.
fn ucx() -> bool {
    match available() {
        Ok(()) => true,
        Err(e) => {
            println!("skipped: {e}");
            false
        }
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 256) as u8).collect()
}

/// An end with bytes, and another one that reads them.
struct Pair {
    server: Arc<UcxTransport>,
    client: Arc<UcxTransport>,
    link: Arc<dyn Link>,
    data: Vec<u8>,
    number: u64,
    region: RemoteRegion,
}

impl Pair {
    fn new(len: usize) -> Self {
        let [server, client] = [(); 2].map(|()| UcxTransport::new("lo").unwrap());
        let data = pattern(len);
        let (number, descriptor) = server.register(Arc::new(data.clone())).unwrap();
        let link = client.connect(&server.address().unwrap()).unwrap();
        let region = link.attach(&descriptor).unwrap();
        Self {
            server,
            client,
            link,
            data,
            number,
            region,
        }
    }

    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<u8>, TransportError> {
        let total = ranges.iter().map(|r| r.len as usize).sum();
        let mut got = vec![0; total];
        let deadline = Instant::now() + WAIT;
        let read = self.link.read_many(self.region, ranges, &mut got, deadline);
        read.map(|()| got)
    }

    fn check(&self, ranges: &[ByteRange]) {
        let part = |r: &ByteRange| &self.data[r.offset as usize..][..r.len as usize];
        let want: Vec<u8> = ranges.iter().flat_map(part).copied().collect();
        assert_eq!(self.read(ranges).unwrap(), want);
    }
}

#[test]
fn what_is_read_is_what_was_registered() {
    if !ucx() {
        return;
    }
    let pair = Pair::new(3 << 20);
    pair.check(&[]);
    pair.check(&[ByteRange { offset: 5, len: 0 }]);
    for len in [1, 4, 64, 4097, 100_000, 1 << 20] {
        pair.check(&[ByteRange {
            offset: 12_345,
            len,
        }]);
    }
    for n in [2, 64, 500] {
        let range = |i: u64| ByteRange {
            offset: i * 5001 % (2 << 20),
            len: (i * 97 % 3000) as u32,
        };
        pair.check(&(0..n).map(range).collect::<Vec<_>>());
    }
    let outside = [ByteRange {
        offset: (3 << 20) - 4,
        len: 8,
    }];
    let e = pair.read(&outside);
    assert!(matches!(e, Err(TransportError::Refused(_))), "{e:?}");
}

#[test]
fn many_threads_share_one_end() {
    if !ucx() {
        return;
    }
    let pair = Pair::new(1 << 20);
    std::thread::scope(|s| {
        for t in 0..4u64 {
            let pair = &pair;
            s.spawn(move || {
                for i in 0..200u64 {
                    let offset = (t * 7919 + i * 5003) % 1_000_000;
                    pair.check(&[ByteRange { offset, len: 100 }]);
                }
            });
        }
    });
}

#[test]
fn links_come_and_go_and_regions_too() {
    if !ucx() {
        return;
    }
    let mut pair = Pair::new(1000);
    let range = [ByteRange { offset: 0, len: 8 }];
    for i in 0..20 {
        pair.check(&range);
        let (number, descriptor) = pair.server.register(Arc::new(pattern(1000 + i))).unwrap();
        pair.link = pair
            .client
            .connect(&pair.server.address().unwrap())
            .unwrap();
        pair.region = pair.link.attach(&descriptor).unwrap();
        pair.server.release(pair.number);
        (pair.number, pair.data) = (number, pattern(1000 + i));
    }
    pair.check(&range);
}

#[test]
fn closing_ends_both_sides() {
    if !ucx() {
        return;
    }
    let pair = Pair::new(100);
    let range = [ByteRange { offset: 0, len: 8 }];
    pair.check(&range);
    pair.server.close();
    let begun = Instant::now();
    let e = pair.read(&range).unwrap_err();
    assert!(
        matches!(e, TransportError::PeerDead(_) | TransportError::Deadline(_)),
        "{e}"
    );
    assert!(begun.elapsed() < 2 * WAIT);
    pair.client.close();
    assert_eq!(pair.read(&range), Err(TransportError::Closed));
    let one = pair.client.register(Arc::new(vec![1u8]));
    assert_eq!(one.err(), Some(TransportError::Closed));
    let link = pair.client.connect(b"anything");
    assert_eq!(link.err(), Some(TransportError::Closed));
}
