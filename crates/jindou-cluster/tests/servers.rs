//! A program of its own, since it is built where the feature `servers` is on.
//!
//! Two servers of a small store in one process, over shared memory and over TLS: requested data comes back whole either
//! way.

use jindou_cluster::servers::{ClusterFile, Servers};
use jindou_cluster::shards::{NearShards, Reply, RequestGraphs, ShardClient, ShardRequest};
use jindou_cluster::testing::near_of_terms;
use jindou_cluster::transport::ucx::{Fabric, UcxOptions, UcxTransport, available};
use jindou_cluster::transport::{Epoch, Transport};
use jindou_graph::shard::{Blocks, EVERYTHING, Far, Posts};
use jindou_model::{CancelToken, Direction, Error, MemoryBudget, Result};
use jindou_store::Base;
use jindou_store::shard::{Cluster, Sharding, open_shards};
use jindou_store::testing::varied_quads;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A wait that only a fault makes this long, even on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

fn ucx() -> bool {
    match available() {
        Ok(()) => true,
        Err(e) => {
            println!("skipped: {e}");
            false
        }
    }
}

/// Bytes that repeat after 64 KiB, made quickly: tests are not optimised.
fn pattern(len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len.min(1 << 16))
        .map(|i| (i * 31 + i / 256) as u8)
        .collect();
    while bytes.len() < len {
        let more = bytes.len().min(len - bytes.len());
        bytes.extend_from_within(..more);
    }
    bytes
}

/// Answers a message of a length and some bytes with that many bytes, and the length of the others.
struct Echo;

impl Posts for Echo {
    fn take(&self, shard: u32, message: &[u8]) -> Result<Vec<u8>> {
        let Some((len, rest)) = message.split_first_chunk::<8>() else {
            return Err(Error::Shard {
                shard,
                message: "no length".into(),
            });
        };
        let mut out = pattern(u64::from_le_bytes(*len) as usize);
        out.extend_from_slice(&(rest.len() as u64).to_le_bytes());
        Ok(out)
    }
}

fn ask_echo(from: &Servers, shard: u32, sent: usize, wanted: usize) -> Result<()> {
    let mut message = (wanted as u64).to_le_bytes().to_vec();
    message.extend_from_slice(&vec![7; sent]);
    let token = CancelToken::with_deadline(WAIT);
    let mut want = pattern(wanted);
    want.extend_from_slice(&(sent as u64).to_le_bytes());
    match from
        .ask(&[(shard, ShardRequest::Post(message))], &token)?
        .pop()
    {
        Some(Reply::Post(got)) => assert!(got == want, "{sent} {wanted}"),
        other => panic!("{other:?}"),
    }
    Ok(())
}

/// A store in two shards, and certificates.
struct Setup {
    folder: tempfile::TempDir,
    cluster: Cluster,
    bases: Vec<Arc<Base>>,
    ports: [u16; 2],
}

impl Setup {
    fn new() -> Self {
        let sharding = Sharding::new(2).with_block_shift(Some(0));
        let (folder, near) = near_of_terms(&varied_quads(), sharding);
        let bases = near.unwrap().shards().to_vec();
        let cluster = Cluster::read(&folder.path().join("store"))
            .unwrap()
            .unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        put("authority.pem", &authority.pem());
        for name in ["a", "b"] {
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.extended_key_usages = vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ];
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &authority).unwrap();
            put(&format!("{name}.pem"), &certificate.pem());
            put(&format!("{name}.key"), &key.serialize_pem());
        }
        let ports = [(); 2].map(|()| jindou_testing::free_port());
        Self {
            folder,
            cluster,
            bases,
            ports,
        }
    }

    fn file(&self, fabric: &str, devices: Option<&str>) -> ClusterFile {
        let mut text = format!(
            "token = \"0123456789abcdef\"\nauthority = \"authority.pem\"\nfabric = \"{fabric}\"\n"
        );
        for ((name, port), shard) in ["a", "b"].iter().zip(self.ports).zip(0..) {
            let _ = write!(
                text,
                "[[server]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\nhttp = \"h:1\"\nshards = [{shard}]\n\
                 certificate = \"{name}.pem\"\nkey = \"{name}.key\"\n"
            );
            if let Some(devices) = devices {
                let _ = writeln!(text, "devices = \"{devices}\"");
            }
        }
        let path: PathBuf = self.folder.path().join("cluster.toml");
        ClusterFile::parse(&path, &text).unwrap()
    }

    fn start(&self, file: &ClusterFile, at: usize) -> Servers {
        self.start_within(file, at, &MemoryBudget::unlimited())
    }

    fn start_within(&self, file: &ClusterFile, at: usize, memory: &MemoryBudget) -> Servers {
        let mut own = vec![None; 2];
        own[at] = Some(Arc::clone(&self.bases[at]));
        let (name, posts) = (["a", "b"][at], Some(Arc::new(Echo) as Arc<dyn Posts>));
        Servers::start(file, name, &self.cluster, own, posts, memory).unwrap()
    }

    /// Both servers, each with a connection to the other one.
    fn both(&self, files: [&ClusterFile; 2]) -> [Servers; 2] {
        let both = [self.start(files[0], 0), self.start(files[1], 1)];
        for (server, other) in both.iter().zip([1, 0]) {
            until("a connection", || {
                server.link(other, &CancelToken::new()).is_ok()
            });
        }
        both
    }

    fn blocks(&self) -> Blocks {
        let base = Arc::clone(&self.bases[0]);
        let own = base.own_data().unwrap();
        Blocks::clone(own.blocks())
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }
}

fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT;
    while !ready() {
        assert!(Instant::now() < end, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn taken(servers: &Servers) -> Option<u64> {
    servers.lanes()[0].1
}

fn with_lanes(both: &[Servers; 2]) {
    for server in both {
        until("lane", || taken(server).is_some());
    }
}

/// Terms of the far shard, and messages of many lengths both ways.
fn everything_comes_back(setup: &Setup, both: &[Servers; 2]) {
    let near = NearShards::new(open_shards(Path::new(&setup.store()), &setup.cluster).unwrap());
    let token = CancelToken::with_deadline(WAIT);
    for (server, far) in both.iter().zip([1, 0]) {
        let owned = |id: &u32| {
            let one = ShardRequest::Predicates {
                direction: Direction::Out,
                vertices: vec![*id],
            };
            near.ask(&[(far, one)], &token).is_ok()
        };
        let ids: Vec<u32> = (1..60).filter(owned).collect();
        assert!(!ids.is_empty());
        let requests = [
            (far, ShardRequest::Terms { ids: ids.clone() }),
            (
                far,
                ShardRequest::Predicates {
                    vertices: ids,
                    direction: Direction::Out,
                },
            ),
        ];
        let want = near.ask(&requests, &token).unwrap();
        let got = server.ask(&requests, &token).unwrap();
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
        for (sent, wanted) in [
            (0, 0),
            (10, 100_000),
            (1 << 20, (1 << 20) - 30),
            (9 << 20, 3),
            (1, 40 << 20),
            (20 << 20, 20 << 20),
        ] {
            ask_echo(server, far, sent, wanted).unwrap();
        }
    }
}

#[test]
fn over_shared_memory_all_comes_back_whole() {
    if !ucx() {
        return;
    }
    let setup = Setup::new();
    let file = setup.file("ucx", None);
    let both = setup.both([&file, &file]);
    with_lanes(&both);
    let before = both.each_ref().map(|s| taken(s).unwrap());
    everything_comes_back(&setup, &both);
    for (server, before) in both.iter().zip(before) {
        assert_eq!(taken(server), Some(before + 7), "all went over UCX");
    }
    // More at a time than a lane accepts, of lengths that sometimes need parts.
    std::thread::scope(|s| {
        for t in 0..24_usize {
            let server = &both[t % 2];
            s.spawn(move || {
                for i in 0..30 {
                    let [sent, wanted] = [t * 31 + i, t + i * 7].map(|n| match n % 10 {
                        0 => n << 13,
                        _ => n * 50,
                    });
                    ask_echo(server, 1 - (t % 2) as u32, sent, wanted).unwrap();
                }
            });
        }
    });
    // A shard's failure is its own error, and not the lane's.
    let token = CancelToken::with_deadline(WAIT);
    let e = both[0].ask(&[(1, ShardRequest::Post(vec![1]))], &token);
    let e = e.unwrap_err().to_string();
    assert!(e.contains("server b at") && e.contains("no length"), "{e}");
    assert!(taken(&both[0]).is_some());
}

/// Requests about all keys of a shard: lists of every predicate, merged and with graphs, cut and paged; existence of
/// edges; numbers of edges.
fn questions(near: &NearShards, far: u32) -> Vec<ShardRequest> {
    let token = CancelToken::with_deadline(WAIT);
    let mut all = Vec::new();
    for (predicate, direction) in (0..5).flat_map(|p| [(p, Direction::Out), (p, Direction::In)]) {
        for graphs in [RequestGraphs::Default, RequestGraphs::Union] {
            let every = ShardRequest::Keys {
                predicate,
                direction,
                graphs: graphs.clone(),
                from: 0,
                most: u32::MAX,
            };
            let found = near.ask(&[(far, every)], &token).unwrap().pop();
            let Some(Reply::Ids { ids: keys, .. }) = found else {
                panic!("{found:?}");
            };
            if keys.is_empty() {
                continue;
            }
            for (within, most) in [(EVERYTHING, 1 << 20), ([4, 60], 1 << 20), (EVERYTHING, 3)] {
                for merged in [false, true] {
                    all.push(ShardRequest::Lists {
                        predicate,
                        direction,
                        graphs: graphs.clone(),
                        merged,
                        keys: keys.clone(),
                        within,
                        most,
                    });
                }
            }
            let neighbours = (1..).take(keys.len()).collect();
            all.push(ShardRequest::Contains {
                predicate,
                direction,
                graphs: graphs.clone(),
                keys: keys.clone(),
                neighbours,
            });
            all.push(ShardRequest::Degrees {
                predicate,
                direction,
                keys,
            });
        }
    }
    all
}

/// Lists read from the other server's memory are those that it would send; over shared memory without a message.
#[test]
fn lists_that_are_read_are_those_that_would_be_sent() {
    if !ucx() {
        return;
    }
    for devices in [None, Some("lo")] {
        let setup = Setup::new();
        let near = NearShards::new(open_shards(&setup.store(), &setup.cluster).unwrap());
        let file = setup.file("ucx", devices);
        let both = setup.both([&file, &file]);
        with_lanes(&both);
        assert!(both.iter().all(|s| s.reads()[0].1.is_none()));
        for server in &both {
            server.serve_reads(&setup.store());
        }
        for server in &both {
            until("reads", || server.reads()[0].1.is_some());
        }
        let token = CancelToken::with_deadline(WAIT);
        let blocks = setup.blocks();
        for (server, far) in both.iter().zip([1, 0]) {
            let sent = taken(server).unwrap();
            let mut read = 0;
            let questions = questions(&near, far);
            assert!(questions.len() > 20);
            for question in &questions {
                let want = near.ask(&[(far, question.clone())], &token).unwrap();
                if let Some(got) = server.read(&blocks, far, question, &token) {
                    assert_eq!([got], *want, "{question:?}");
                    read += 1;
                }
                // Requested or read, as a session does it.
                let got = server.ask(&[(far, question.clone())], &token).unwrap();
                assert_eq!(got, want);
            }
            assert_eq!(taken(server), Some(sent + questions.len() as u64));
            assert_eq!(server.reads()[0].1, Some(read));
            if devices.is_none() {
                assert!(server.reading().is_some());
                assert!(read as usize * 3 > questions.len(), "{read} were read");
            }
            // Keys that do not exist, and keys of the other shard.
            for key in [0, u32::MAX] {
                let foreign = ShardRequest::Degrees {
                    predicate: 0,
                    direction: Direction::Out,
                    keys: vec![key],
                };
                assert_eq!(server.read(&blocks, far, &foreign, &token), None);
            }
        }
        // When its lane has ended, a server reads nothing any more.
        both[1].break_lanes();
        until("end of the reads", || both[0].reads()[0].1.is_none());
        assert_eq!(both[0].reading(), None);
        everything_comes_back(&setup, &both);
    }
}

#[test]
fn a_cluster_file_can_say_that_nothing_is_read() {
    if !ucx() {
        return;
    }
    let setup = Setup::new();
    let (reads, mut none) = (setup.file("ucx", None), setup.file("ucx", None));
    none.reads = false;
    let both = setup.both([&reads, &none]);
    with_lanes(&both);
    for server in &both {
        server.serve_reads(&setup.store());
    }
    std::thread::sleep(Duration::from_millis(500));
    assert!(both.iter().all(|s| s.reads()[0].1.is_none()));
    everything_comes_back(&setup, &both);
}

#[test]
fn over_named_devices_all_comes_back_whole() {
    if !ucx() {
        return;
    }
    let setup = Setup::new();
    let file = setup.file("ucx", Some("lo"));
    let both = setup.both([&file, &file]);
    with_lanes(&both);
    everything_comes_back(&setup, &both);
}

#[test]
fn without_a_lane_tls_is_used() {
    if !ucx() {
        return;
    }
    let setup = Setup::new();
    let (tls, ucx) = (setup.file("tls", None), setup.file("ucx", None));
    // One without UCX, and one over another carrier, to which no connection is possible.
    for other in [tls, setup.file("ucx", Some("lo"))] {
        let both = setup.both([&ucx, &other]);
        everything_comes_back(&setup, &both);
        assert_eq!(both.each_ref().map(taken), [None; 2]);
    }
}

#[test]
fn a_lane_that_breaks_gives_way_to_tls() {
    if !ucx() {
        return;
    }
    let setup = Setup::new();
    let file = setup.file("ucx", None);
    let both = setup.both([&file, &file]);
    with_lanes(&both);
    let links = [
        both[0].link(1, &CancelToken::new()).unwrap(),
        both[1].link(0, &CancelToken::new()).unwrap(),
    ];
    both[1].break_lanes();
    until("end of the lanes", || {
        both.iter().all(|s| taken(s).is_none())
    });
    everything_comes_back(&setup, &both);
    assert_eq!(
        [
            both[0].link(1, &CancelToken::new()).unwrap(),
            both[1].link(0, &CancelToken::new()).unwrap()
        ],
        links,
        "the connections live"
    );
    // A new server brings a new connection and a new lane.
    let [first, second] = both;
    drop(second);
    until("end of the connection", || {
        first.link(1, &CancelToken::new()).is_err()
    });
    let begun = Instant::now();
    let e = ask_echo(&first, 1, 1, 1).unwrap_err().to_string();
    assert!(e.contains("server b at"), "{e}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let second = setup.start(&file, 1);
    until("lane", || taken(&first).is_some());
    ask_echo(&first, 1, 1 << 20, 5 << 20).unwrap();
    drop(second);
}

#[test]
fn a_request_that_is_given_up_leaves_the_lane_to_others() {
    if !ucx() {
        return;
    }
    let setup = Setup::new();
    let file = setup.file("ucx", None);
    let both = setup.both([&file, &file]);
    with_lanes(&both);
    let mut message = 5_u64.to_le_bytes().to_vec();
    let short = ShardRequest::Post(message.clone());
    message.extend_from_slice(&vec![7; 60 << 20]);
    let long = ShardRequest::Post(message);
    // Over before it is sent, in the middle of its parts, and while its reply is awaited.
    for i in 0..16 {
        let token = CancelToken::with_deadline(Duration::from_millis(i * 25));
        let requests = [(1, if i == 0 { short.clone() } else { long.clone() })];
        let got = both[0].ask(&requests, &token);
        assert!(matches!(got, Ok(_) | Err(Error::Timeout(_))), "{got:?}");
        assert!(i > 0 || got.is_err());
        assert!(taken(&both[0]).is_some(), "the lane broke at {i}");
    }
    let before = taken(&both[0]).unwrap();
    everything_comes_back(&setup, &both);
    assert_eq!(taken(&both[0]), Some(before + 7), "all went over UCX");
}

#[test]
fn noise_over_ucx_is_ignored() {
    if !ucx() {
        return;
    }
    let setup = Setup::new();
    let file = setup.file("ucx", None);
    let both = setup.both([&file, &file]);
    with_lanes(&both);
    let states = Servers::states(&file, "a").unwrap();
    let port = states[1].1.as_ref().unwrap().ucx;
    let mut options = UcxOptions::loopback(Fabric::SharedMemory);
    options.suspect_after = WAIT;
    let stranger = UcxTransport::new(options).unwrap();
    let deadline = || stranger.deadline(WAIT);
    let connect = || stranger.connect(&format!("127.0.0.1:{port}"), deadline());
    for kind in 0..4 {
        let peer = connect().unwrap();
        for len in [0, 1, 39, 40, 41, 5000, 3 << 20] {
            let _ = peer.send(kind, Epoch(kind.into()), &pattern(len), deadline());
            let mut reply = Vec::new();
            let e = peer.call(kind, Epoch(0), &pattern(len), &mut reply, deadline());
            assert!(e.is_err() && reply.is_empty(), "{kind} {len}");
        }
        // A receiver that waits for a damaged part has to learn that it will not come.
        if [1, 2].contains(&kind) {
            until("end of a connection with damaged parts", || {
                peer.failure().is_some()
            });
        }
    }
    let peer = connect().unwrap();
    // A valid part of a lane that does not exist.
    let mut part = [5_u64, 1].map(u64::to_le_bytes).concat();
    part.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    let seal = xxhash_rust::xxh3::xxh3_64_with_seed(b"x", xxhash_rust::xxh3::xxh3_64(&part));
    part.extend_from_slice(&seal.to_le_bytes());
    part.push(b'x');
    for kind in [1, 2] {
        let e = peer.call(kind, Epoch(0), &part, &mut Vec::new(), deadline());
        let e = e.unwrap_err().to_string();
        assert!(e.contains("no such lane"), "{e}");
    }
    everything_comes_back(&setup, &both);
    assert!(both.iter().all(|s| taken(s).is_some()));
    stranger.close();
}

/// Connections held by a stranger.
const STRANGERS: usize = 150;

/// A connection from this address of this machine to the first of the ports, from a port that is not reserved for a
/// server.
fn connect_from(host: &str, ports: [u16; 2]) -> Option<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).ok()?;
    let from: std::net::SocketAddr = format!("{host}:0").parse().ok()?;
    socket.bind(&from.into()).ok()?;
    let own = socket.local_addr().ok()?.as_socket()?.port();
    if ports.contains(&own) {
        return None;
    }
    let to: std::net::SocketAddr = format!("127.0.0.1:{}", ports[0]).parse().ok()?;
    let wait = Duration::from_millis(200);
    socket.connect_timeout(&to.into(), wait).ok()?;
    Some(socket.into())
}

/// A stranger that holds connections to a port and sends at most a word, until it is dropped. Closed connections are
/// opened again.
struct Stranger {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Stranger {
    fn new(from: &'static str, ports: [u16; 2], word: &'static [u8]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut held: Vec<TcpStream> = Vec::new();
            while !told.load(Ordering::Relaxed) {
                held.retain(|s| {
                    let _ = s.set_nonblocking(true);
                    let open = s.peek(&mut [0]);
                    open.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
                });
                for _ in held.len()..STRANGERS.min(held.len() + 8) {
                    if let Some(mut stream) = connect_from(from, ports) {
                        let _ = stream.write_all(word);
                        held.push(stream);
                    }
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn silent_connections_keep_no_peer_out() {
    for (from, word) in [
        // A stranger's address, and the peers' own.
        ("127.0.0.2", &b""[..]),
        ("127.0.0.1", b""),
        // The beginning of a handshake that does not continue.
        ("127.0.0.2", b"\x16\x03\x01\x02\x00\x01"),
    ] {
        let setup = Setup::new();
        let file = setup.file("tls", None);
        let one = setup.start(&file, 0);
        let stranger = Stranger::new(from, setup.ports, word);
        std::thread::sleep(Duration::from_millis(300));
        // A server that connects meanwhile, and connects again.
        for _ in 0..2 {
            let other = setup.start(&file, 1);
            let begun = Instant::now();
            until("a way in", || other.link(0, &CancelToken::new()).is_ok());
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{:?}",
                begun.elapsed()
            );
            ask_echo(&other, 0, 1000, 1000).unwrap();
        }
        drop((stranger, one));
    }
}

#[test]
fn messages_of_peers_are_charged_while_they_come() {
    let setup = Setup::new();
    let file = setup.file("tls", None);
    let memory = MemoryBudget::new(16 << 20);
    let one = setup.start_within(&file, 0, &memory);
    let other = setup.start(&file, 1);
    until("a connection", || {
        other.link(0, &CancelToken::new()).is_ok()
    });
    ask_echo(&other, 0, 3 << 20, 10).unwrap();
    for _ in 0..3 {
        let e = ask_echo(&other, 0, 40 << 20, 10).unwrap_err().to_string();
        assert!(e.contains("memory"), "{e}");
        // The connection continues, and nothing is held.
        ask_echo(&other, 0, 1 << 20, 1 << 20).unwrap();
    }
    until("memory", || memory.used() == 0);
    assert!(memory.peak() <= 16 << 20);
    drop(one);
}
