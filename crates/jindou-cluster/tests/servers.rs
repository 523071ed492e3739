//! A program of its own, since it is built where the feature `servers` is on.
//!
//! Two servers of a small store in one process, connected by TLS: requested data comes back whole, and lists that are read from
//! the other's memory are those that it would send.

use jindou_cluster::servers::{Members, Network, Stream};
use jindou_cluster::shards::{InProcessShards, Reply, RequestGraphs, ShardClient, ShardRequest};
use jindou_cluster::testing::near_of_terms;
use jindou_cluster::transport::Transport;
use jindou_cluster::transport::files::Files;
use jindou_cluster::transport::ucx::{UcxTransport, available};
use jindou_graph::shard::{EVERYTHING, Far, Posts};
use jindou_model::{CancelToken, Direction, Error, MemoryBudget, Result};
use jindou_store::shard::Sharding;
use jindou_store::testing::varied_quads;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A wait that only a fault makes this long, even on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

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
            return Err(Error::shard(shard, "no length"));
        };
        let mut out = pattern(u64::from_le_bytes(*len) as usize);
        out.extend_from_slice(&(rest.len() as u64).to_le_bytes());
        Ok(out)
    }
}

/// The way to the other one of two servers.
struct Wire {
    tls: TlsConnector,
    name: &'static str,
    address: SocketAddr,
}

impl Network for Wire {
    fn servers(&self) -> Vec<String> {
        vec![self.name.to_owned()]
    }

    fn dial(
        &self,
        _: &str,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<Stream, String>> + Send>> {
        let (tls, address) = (self.tls.clone(), self.address);
        Box::pin(async move {
            let tcp = TcpStream::connect(address);
            let tcp = tcp.await.map_err(|e| e.to_string())?;
            let name = ServerName::try_from("server").map_err(|e| e.to_string())?;
            tls.connect(name, tcp).await.map_err(|e| e.to_string())
        })
    }
}

/// A server, until it is dropped.
struct Server {
    members: Members,
    client: Arc<dyn ShardClient>,
    _runtime: Runtime,
}

const NAMES: [&str; 2] = ["a", "b"];

/// A store in two shards, and what its servers need to reach one another.
struct Setup {
    _folder: tempfile::TempDir,
    near: InProcessShards,
    addresses: [SocketAddr; 2],
    accept: TlsAcceptor,
    connect: TlsConnector,
}

impl Setup {
    fn new() -> Self {
        let sharding = Sharding::new(2).with_block_shift(Some(0));
        let (folder, near) = near_of_terms(&varied_quads(), sharding);
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["server".into()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let accept = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let connect = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            _folder: folder,
            near: near.unwrap(),
            addresses: [(); 2]
                .map(|()| SocketAddr::from(([127, 0, 0, 1], jindou_testing::free_port()))),
            accept: TlsAcceptor::from(Arc::new(accept)),
            connect: TlsConnector::from(Arc::new(connect)),
        }
    }

    fn start(&self, at: usize) -> Server {
        self.start_with(at, &MemoryBudget::unlimited(), None)
    }

    /// The server of one of the shards.
    fn start_with(
        &self,
        at: usize,
        memory: &MemoryBudget,
        transport: Option<Arc<dyn Transport>>,
    ) -> Server {
        let members = Members::new(NAMES[at], transport);
        members.run_parts(Arc::new(Echo));
        let mut own = vec![None; 2];
        own[at] = Some(Arc::clone(&self.near.shards()[at]));
        let number = self.near.shards()[at].number();
        members.serve(number, Arc::new(own));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (accept, address) = (self.accept.clone(), self.addresses[at]);
        let listener = runtime.block_on(TcpListener::bind(address)).unwrap();
        let (to, accepted) = tokio::sync::mpsc::channel(4);
        runtime.spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                if let Ok(stream) = accept.accept(tcp).await {
                    let _ = to.send((NAMES[1 - at].into(), stream)).await;
                }
            }
        });
        let network = Arc::new(Wire {
            tls: self.connect.clone(),
            name: NAMES[1 - at],
            address: self.addresses[1 - at],
        });
        runtime.spawn(members.clone().run(network, accepted, memory.clone()));
        Server {
            client: members.client(number),
            members,
            _runtime: runtime,
        }
    }

    /// Both servers, each with a connection to the other one.
    fn both(&self) -> [Server; 2] {
        let both = [self.start(0), self.start(1)];
        both.iter().for_each(Server::wait);
        both
    }
}

impl Server {
    /// Waits for the connection to the other server.
    fn wait(&self) {
        let is_there = || self.members.members().iter().any(|m| m.holdings.is_some());
        until("connection", || {
            is_there() && self.echo(1, 1).is_ok() && self.link().is_some()
        });
    }

    /// The number of a query's connection to the other server.
    fn link(&self) -> Option<u64> {
        let (far, _) = self.members.far().bind(None).ok()??;
        let links = [0, 1].map(|shard| far.link(shard).unwrap_or(0));
        links.into_iter().max()
    }

    /// Sends and receives this many bytes, at whichever shard is not here.
    fn echo(&self, sent: usize, wanted: usize) -> Result<()> {
        let here = self.members.holdings()[0].shard;
        let mut message = (wanted as u64).to_le_bytes().to_vec();
        message.extend_from_slice(&vec![7; sent]);
        let token = CancelToken::with_deadline(WAIT);
        let mut want = pattern(wanted);
        want.extend_from_slice(&(sent as u64).to_le_bytes());
        let request = [(1 - here, ShardRequest::Post(message))];
        match self.client.ask(&request, &token)?.pop() {
            Some(Reply::Post(got)) => assert!(got == want, "{sent} {wanted}"),
            other => panic!("{other:?}"),
        }
        Ok(())
    }
}

fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT;
    while !ready() {
        assert!(Instant::now() < end, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Terms of the far shard, and messages of many lengths both ways.
fn everything_comes_back(setup: &Setup, both: &[Server; 2]) {
    let token = CancelToken::with_deadline(WAIT);
    for (server, far) in both.iter().zip([1, 0]) {
        let owned = |id: &u32| {
            let one = ShardRequest::Predicates {
                direction: Direction::Out,
                vertices: vec![*id],
            };
            setup.near.ask(&[(far, one)], &token).is_ok()
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
        let want = setup.near.ask(&requests, &token).unwrap();
        let got = server.client.ask(&requests, &token).unwrap();
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
        for (sent, wanted) in [
            (0, 0),
            (10, 100_000),
            (1 << 20, (1 << 20) - 30),
            (9 << 20, 3),
            (1, 40 << 20),
            (20 << 20, 20 << 20),
        ] {
            server.echo(sent, wanted).unwrap();
        }
    }
}

#[test]
fn all_comes_back_whole() {
    let setup = Setup::new();
    let both = setup.both();
    everything_comes_back(&setup, &both);
    // More at a time than a connection has in work.
    std::thread::scope(|s| {
        for t in 0..24_usize {
            let server = &both[t % 2];
            s.spawn(move || {
                for i in 0..30 {
                    let [sent, wanted] = [t * 31 + i, t + i * 7].map(|n| match n % 10 {
                        0 => n << 13,
                        _ => n * 50,
                    });
                    server.echo(sent, wanted).unwrap();
                }
            });
        }
    });
    // A shard's failure is its own error, and not the connection's.
    let link = both[0].link();
    let token = CancelToken::with_deadline(WAIT);
    let e = both[0]
        .client
        .ask(&[(1, ShardRequest::Post(vec![1]))], &token);
    let e = e.unwrap_err().to_string();
    assert!(e.contains("server b: no length"), "{e}");
    assert_eq!(both[0].link(), link);
}

/// Requests about all keys of a shard: lists of every predicate, merged and with graphs, cut and paged; existence of
/// edges; numbers of edges.
fn questions(near: &InProcessShards, far: u32) -> Vec<ShardRequest> {
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

/// Asks all questions about the far shard; returns how many were answered by reading.
fn ask_all(setup: &Setup, server: &Server, far: u32, questions: &[ShardRequest]) -> usize {
    let token = CancelToken::with_deadline(WAIT);
    let own = setup.near.shards()[0].own_data().unwrap();
    let mut read = 0;
    for question in questions {
        let want = setup.near.ask(&[(far, question.clone())], &token).unwrap();
        if let Some(got) = server.client.read(own.blocks(), far, question, &token) {
            assert_eq!([got], *want, "{question:?}");
            read += 1;
        }
        let got = server.client.ask(&[(far, question.clone())], &token);
        assert_eq!(got.unwrap(), want);
    }
    // Keys that do not exist, and keys of the other shard.
    for key in [0, u32::MAX] {
        let foreign = ShardRequest::Degrees {
            predicate: 0,
            direction: Direction::Out,
            keys: vec![key],
        };
        assert_eq!(
            server.client.read(own.blocks(), far, &foreign, &token),
            None
        );
    }
    read
}

fn over_loopback() -> Option<Arc<dyn Transport>> {
    match available() {
        Ok(()) => Some(UcxTransport::new("lo").unwrap()),
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }
}

#[test]
fn lists_that_are_read_are_those_that_would_be_sent() {
    let setup = Setup::new();
    let files = || Some(Arc::new(Files) as Arc<dyn Transport>);
    type Make = fn() -> Option<Arc<dyn Transport>>;
    let kinds: [(Make, bool); 2] = [(files, true), (over_loopback, false)];
    for (transport, is_quick) in kinds {
        let Some(one) = transport() else { continue };
        let memory = MemoryBudget::unlimited();
        let both = [
            setup.start_with(0, &memory, Some(one)),
            setup.start_with(1, &memory, transport()),
        ];
        both.iter().for_each(Server::wait);
        for (server, far) in both.iter().zip([1, 0]) {
            let questions = questions(&setup.near, far);
            assert!(questions.len() > 20);
            // Summaries come after the first requests.
            let mut read = 0;
            for _ in 0..20 {
                read = read.max(ask_all(&setup, server, far, &questions));
                if read * 3 > questions.len() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            println!("{read} of {} were read", questions.len());
            assert!(!is_quick || read * 3 > questions.len(), "{read}");
            assert!(!is_quick || server.members.reading().is_some());
            assert!(read > 0 || server.members.reading().is_none());
        }
        // A server without a transport neither offers its memory nor reads that of others; nor is that of a server read
        // that has gone.
        let [first, second] = both;
        drop(second);
        let both = [first, setup.start(1)];
        until("connection", || both[0].echo(1, 1).is_ok());
        assert_eq!(both[0].members.reading(), None);
        let questions = questions(&setup.near, 1);
        assert_eq!(ask_all(&setup, &both[0], 1, &questions), 0);
        everything_comes_back(&setup, &both);
    }
}

#[test]
fn a_new_server_is_a_new_connection() {
    let setup = Setup::new();
    let [first, second] = setup.both();
    let link = first.link();
    drop(second);
    until("end of the connection", || first.link().is_none());
    let e = first.echo(1, 1).unwrap_err().to_string();
    assert!(e.contains("server b: "), "{e}");
    let _second = setup.start(1);
    first.wait();
    assert_ne!(first.link(), link);
    first.echo(1 << 20, 5 << 20).unwrap();
}

#[test]
fn a_request_that_is_given_up_leaves_the_connection_to_others() {
    let setup = Setup::new();
    let both = setup.both();
    let mut message = 5_u64.to_le_bytes().to_vec();
    message.extend_from_slice(&vec![7; 12 << 20]);
    let long = ShardRequest::Post(message);
    // In the middle of its parts, and while its reply is awaited.
    for i in 1..12 {
        let token = CancelToken::with_deadline(Duration::from_millis(i * 8));
        let got = both[0].client.ask(&[(1, long.clone())], &token);
        let is_fit = matches!(got, Ok(_) | Err(Error::Timeout(_) | Error::Shard { .. }));
        assert!(is_fit, "{got:?}");
    }
    // A server that gets no processor time for seconds is taken for dead, and dialled again.
    both.iter().for_each(Server::wait);
    everything_comes_back(&setup, &both);
}

#[test]
fn messages_of_peers_are_charged_while_they_come() {
    let setup = Setup::new();
    let memory = MemoryBudget::new(16 << 20);
    let _one = setup.start_with(0, &memory, None);
    let other = setup.start(1);
    other.wait();
    other.echo(3 << 20, 10).unwrap();
    for _ in 0..3 {
        let e = other.echo(40 << 20, 10).unwrap_err().to_string();
        assert!(e.contains("memory"), "{e}");
        // The connection continues, and nothing is held.
        other.echo(1 << 20, 1 << 20).unwrap();
    }
    until("memory", || memory.used() == 0);
    assert!(memory.peak() <= 16 << 20);
}
