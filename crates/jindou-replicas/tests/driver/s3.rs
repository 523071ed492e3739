//! Logs in a bucket of a real S3 server, versitygw. `JINDOU_VERSITYGW` is the path of its binary.

use crate::bases::check_bases;
use crate::bucket::{check_objects, check_spans};
use crate::faulty::Faulty;
use crate::relay::Relay;
use crate::servers::{run_three_servers, seconds, seeds, settings};
use crate::world::{Way, World, limits};
use jindou_replicas::{Bucket, Consistency, Limits, RequestKey};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// An S3 server with one bucket in a temporary folder.
pub struct Gateway {
    binary: PathBuf,
    folder: tempfile::TempDir,
    pub port: u16,
    child: Option<Child>,
    encrypted: bool,
}

const BUCKET: &str = "store.log";

impl Gateway {
    /// Starts versitygw. If `JINDOU_VERSITYGW` is not set, prints that and returns `None`.
    pub async fn start() -> Option<Self> {
        let Some(binary) = std::env::var_os("JINDOU_VERSITYGW") else {
            eprintln!("not run: JINDOU_VERSITYGW names no versitygw");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("buckets");
        std::fs::create_dir_all(root.join(BUCKET)).unwrap();
        // Not an ephemeral port: a client that tries to connect while the server is dead might get the same port as its
        // own, and connect to itself.
        let free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let first = 20_000 + rand::random::<u16>() % 10_000;
        let port = (first..32_000).find(free).unwrap();
        let mut gateway = Self {
            binary: binary.into(),
            folder,
            port,
            child: None,
            encrypted: false,
        };
        gateway.begin().await;
        Some(gateway)
    }

    pub async fn begin(&mut self) {
        let child = Command::new(&self.binary)
            .args(["--port", &format!("127.0.0.1:{}", self.port)])
            .args(["--access", "key", "--secret", "secret"])
            .args(match self.encrypted {
                true => vec![
                    "--cert".into(),
                    self.folder.path().join("cert.pem"),
                    "--key".into(),
                    self.folder.path().join("key.pem"),
                ],
                false => Vec::new(),
            })
            // Without `--sidecar`: if the server is killed in the middle of a put, that mode can leave the attributes
            // of an object without the object. The name is then taken for ever, and reads find nothing.
            .args(["--keep-alive", "--quiet", "posix"])
            .arg(self.folder.path().join("buckets"))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            seconds(0.05).await;
        }
        panic!("versitygw does not answer");
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn bucket(&self) -> Bucket {
        through(self.port, limits())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}

fn through(port: u16, limits: Limits) -> Bucket {
    let place = format!("s3://{BUCKET}/a prefix/of it");
    Bucket::open_with(&place, variables(port, &[]), limits).unwrap()
}

/// Environment variables of a client, some of them changed.
fn variables(port: u16, changed: &[(&str, &str)]) -> Vec<(String, String)> {
    let endpoint = format!("http://127.0.0.1:{port}");
    let usual = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ];
    let kept = usual
        .iter()
        .filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
    let all = kept.chain(changed);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects() {
    let Some(gateway) = Gateway::start().await else {
        return;
    };
    check_objects(gateway.bucket()).await;
}

/// HTTPS with a certificate that only `AWS_CA_BUNDLE` lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn encrypted() {
    let Some(mut gateway) = Gateway::start().await else {
        return;
    };
    gateway.kill();
    let folder = gateway.folder.path().to_owned();
    let at = |name: &str| folder.join(name);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(at("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(at("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let roots = at("cert.pem").to_string_lossy().into_owned();
    gateway.encrypted = true;
    gateway.begin().await;
    let endpoint = format!("https://localhost:{}", gateway.port);
    let open = |endpoint: &str, roots: &str| {
        let changed = [
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ALLOW_HTTP", "false"),
            ("AWS_CA_BUNDLE", roots),
        ];
        let variables = variables(gateway.port, &changed);
        Bucket::open_with(&format!("s3://{BUCKET}"), variables, limits()).unwrap()
    };
    check_objects(open(&endpoint, &roots)).await;
    // An unknown certificate, a certificate for another name, and a bundle without certificates.
    let why = open(&endpoint, "").probe().await.unwrap_err();
    assert!(
        why.contains("cannot be reached: invalid peer certificate: "),
        "{why}"
    );
    let other = endpoint.replace("localhost", "127.0.0.1");
    let why = open(&other, &roots).probe().await.unwrap_err();
    assert!(
        why.contains("cannot be reached: invalid peer certificate: "),
        "{why}"
    );
    let key = at("key.pem");
    let why = open(&endpoint, &key.to_string_lossy())
        .probe()
        .await
        .unwrap_err();
    assert!(
        why.ends_with("has no certificates to check servers against"),
        "{why}"
    );
}

/// Listings of more names than one page holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages() {
    let Some(gateway) = Gateway::start().await else {
        return;
    };
    check_spans(gateway.bucket()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bases() {
    let Some(gateway) = Gateway::start().await else {
        return;
    };
    check_bases(&gateway.bucket()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers() {
    let Some(gateway) = Gateway::start().await else {
        return;
    };
    let world = World::far(&gateway.bucket(), gateway.bucket(), 1, settings());
    run_three_servers(&world).await;
}

/// The S3 server is killed with SIGKILL while clients run, and is started again three seconds later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bucket_dies_and_comes_back() {
    let Some(mut gateway) = Gateway::start().await else {
        return;
    };
    let world = World::far(&gateway.bucket(), gateway.bucket(), 2, settings());
    let servers = world.new_servers([false, false, true]).await;
    let clients = world.clients(6, 3);
    for _ in 0..2 {
        seconds(1.5).await;
        world.disturb();
        world.disturb_bucket();
        gateway.kill();
        for _ in 0..30 {
            seconds(0.1).await;
            world.disturb_bucket();
        }
        assert_eq!(world.query(0, Consistency::Any).await, Some(true));
        gateway.begin().await;
        world.disturb();
        world.disturb_bucket();
    }
    seconds(1.5).await;
    let sums = world.finish(clients, &servers).await;
    assert!(sums.acknowledged > 50 && sums.answered > 100, "{sums:?}");
}

/// All requests are delayed, and one of ten fails: its request, its response or the end of its response is lost.
async fn bad_network(seed: u64) {
    let Some(gateway) = Gateway::start().await else {
        return;
    };
    let relay = Relay::start(gateway.port, seed).await;
    let far = through(relay.port, limits());
    let world = World::far(&far, gateway.bucket(), seed, settings());
    world.always_bad.store(true, Ordering::SeqCst);
    relay.delay.store(20, Ordering::SeqCst);
    relay.bad.store(100, Ordering::SeqCst);
    let empty = [0, 1, 2].map(|index| (seed >> index) & 1 == 0);
    let mut servers = world.new_servers(empty).await;
    let clients = world.clients(6, 3);
    for round in 0..3 {
        seconds(1.0).await;
        let victim = (seed as usize + round) % 3;
        world.kill(&mut servers[victim]).await;
        seconds(0.3).await;
        world.start(&mut servers[victim]).await;
    }
    seconds(3.0).await;
    relay.bad.store(0, Ordering::SeqCst);
    let wrong = relay.wrong.load(Ordering::SeqCst);
    let sums = world.finish(clients, &servers).await;
    eprintln!("{seed}: {sums:?}, {wrong} requests went wrong");
    assert!(
        sums.acknowledged > 20 && sums.answered > 20 && wrong > 20,
        "{sums:?}, {wrong}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_network() {
    bad_network(11).await;
}

/// To run by hand: `JINDOU_RUNS` seeds from `JINDOU_SEED` on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long"]
async fn a_bad_network_in_many_seeds() {
    for seed in seeds() {
        bad_network(seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_by_the_server() {
    let Some(gateway) = Gateway::start().await else {
        return;
    };
    let refused = async |place: &str, changed: &[(&str, &str)]| {
        let bucket = Bucket::open_with(place, variables(gateway.port, changed), limits());
        bucket.unwrap().probe().await.unwrap_err()
    };
    let place = format!("s3://{BUCKET}/x");
    let why = refused(&place, &[("AWS_SECRET_ACCESS_KEY", "wrong")]).await;
    assert!(
        why.starts_with("the bucket cannot be read: the bucket refuses: SignatureDoesNotMatch ("),
        "{why}"
    );
    let why = refused(&place, &[("AWS_ACCESS_KEY_ID", "nobody")]).await;
    assert!(
        why.starts_with("the bucket cannot be read: the bucket refuses: XAdminUserNotFound ("),
        "{why}"
    );
    let why = refused("s3://another", &[]).await;
    assert_eq!(
        why,
        "the bucket cannot be read: the bucket refuses: there is no such bucket"
    );
    // A server that accepts every create-only put; versitygw does not, so `Faulty` simulates it.
    let (faulty, careless) = Faulty::between(&gateway.bucket(), 1);
    faulty.careless.store(true, Ordering::SeqCst);
    let why = careless.probe().await.unwrap_err();
    assert!(why.contains("create the same name"), "{why}");
}

/// Log locations and settings that are rejected without a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_settings_are_rejected() {
    let refused = |place: &str, changed: &[(&str, &str)]| {
        Bucket::open_with(place, variables(9, changed), limits()).unwrap_err()
    };
    for place in ["http://bucket/prefix", "gs://bucket", "file:///tmp", ""] {
        let why = refused(place, &[]);
        let begin =
            format!("invalid log location \"{place}\": expected s3://BUCKET/PREFIX or a directory");
        assert!(why.starts_with(&begin), "{why}");
    }
    for place in [
        "s3://",
        "s3:///x",
        "s3://a",
        "s3://user@host/x",
        "s3://bucket?x",
    ] {
        let why = refused(place, &[]);
        assert!(why.ends_with("cannot be the name of a bucket"), "{why}");
    }
    let why = refused("s3://bucket", &[("AWS_ALLOW_HTTP", "false")]);
    assert_eq!(
        why,
        "AWS_ENDPOINT_URL is \"http://127.0.0.1:9\", whose requests are not encrypted: AWS_ALLOW_HTTP=true allows that"
    );
    let why = refused("s3://bucket", &[("AWS_ENDPOINT_URL_S3", "127.0.0.1:9")]);
    assert!(why.starts_with("AWS_ENDPOINT_URL_S3 is "), "{why}");
    let why = refused("s3://bucket", &[("AWS_SECRET_ACCESS_KEY", "")]);
    assert!(
        why.starts_with("the settings for S3 are not right: "),
        "{why}"
    );
    // No server listens on port 9.
    let closed = Bucket::open_with("s3://bucket", variables(9, &[]), limits()).unwrap();
    let why = closed.probe().await.unwrap_err();
    assert!(
        why.starts_with(
            "the bucket cannot be read: 127.0.0.1:9 cannot be reached: Connection refused"
        ),
        "{why}"
    );
    // No request is sent to the cloud's metadata service for credentials.
    let none = [
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SECRET_ACCESS_KEY", ""),
        ("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9"),
    ];
    let began = Instant::now();
    let nobody = Bucket::open_with("s3://bucket", variables(9, &none), Limits::default()).unwrap();
    let why = nobody.probe().await.unwrap_err();
    assert!(
        why.contains("there are no credentials: AWS_ACCESS_KEY_ID"),
        "{why}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

/// A server that accepts connections and sends nothing, nonsense, or too much.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_do_not_speak_http() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let long = "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\nLast-Modified: Sat, 28 Nov 2026 05:00:00 GMT\r\nETag: \"x\"\r\n\r\nx";
    for (answer, fill) in [
        ("", false),
        ("nonsense\r\n\r\n", false),
        (endless, true),
        (long, false),
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let listening = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = vec![0; 64 << 10];
                    let _ = client.read(&mut request).await;
                    let _ = client.write_all(answer.as_bytes()).await;
                    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                    while fill && client.write_all(chunk.as_bytes()).await.is_ok() {}
                    while client.read(&mut request).await.is_ok_and(|read| read > 0) {}
                });
            }
        });
        let short = Limits {
            request: Duration::from_millis(300),
            ..Limits::default()
        };
        let bucket = through(port, short);
        let began = Instant::now();
        for _ in 0..3 {
            assert!(bucket.get("log.json").await.is_err());
            assert!(bucket.list(1, 0, false).await.is_err());
            let put = bucket.replace("log.json", "x".into()).await;
            assert!(put.is_err() || !answer.is_empty());
        }
        assert!(
            began.elapsed() < Duration::from_secs(8),
            "{answer}: {:?}",
            began.elapsed()
        );
        listening.abort();
    }
}

/// To run by hand: commits per second and response times of 1 and 64 clients of one server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn commits() {
    let folder = tempfile::tempdir_in(std::env::var("JINDOU_DISK").unwrap_or(".".into())).unwrap();
    let mut places = vec![(
        "directory".to_owned(),
        Bucket::directory(folder.path(), Limits::default()).unwrap(),
    )];
    let gateway = Gateway::start().await;
    let mut relays = Vec::new();
    if let Some(gateway) = &gateway {
        for delay in [0, 20] {
            let relay = Relay::start(gateway.port, 1).await;
            relay.delay.store(delay, Ordering::SeqCst);
            let place = format!("s3://{BUCKET}/{delay}");
            let variables = variables(relay.port, &[]);
            let bucket = Bucket::open_with(&place, variables, Limits::default()).unwrap();
            places.push((format!("versitygw, {delay} ms later"), bucket));
            relays.push(relay);
        }
    }
    for (name, bucket) in places {
        let world = World::far(
            &bucket,
            bucket.clone(),
            1,
            jindou_replicas::Settings::default(),
        );
        let server = world.new_server(0, true).await;
        let running = server.process();
        for clients in [1_u128, 64] {
            let before = world.faulty.kinds.lock().unwrap().get("PUT").copied();
            let end = Instant::now() + Duration::from_secs(8);
            let tasks = (0..clients).map(|client| {
                let handle = running.handle.clone();
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    while Instant::now() < end {
                        let began = Instant::now();
                        let key =
                            RequestKey((clients << 96) + (client << 64) + times.len() as u128 + 1);
                        let outcome = handle.update(key, b"\0".as_slice().into()).await;
                        assert!(matches!(outcome, jindou_replicas::Outcome::Done { .. }));
                        times.push(began.elapsed());
                    }
                    times
                })
            });
            let mut times: Vec<Duration> =
                (futures_util::future::join_all(tasks).await.into_iter())
                    .flat_map(Result::unwrap)
                    .collect();
            times.sort_unstable();
            let after = world.faulty.kinds.lock().unwrap().get("PUT").copied();
            let puts = after.unwrap_or(0) - before.unwrap_or(0);
            println!(
                "{name}: {clients} clients, {} commits/s, {puts} puts, median {:?}, 99 % {:?}",
                times.len() / 8,
                times[times.len() / 2],
                times[times.len() * 99 / 100],
            );
        }
    }
}

/// To run by hand: requests to the bucket by idle servers in a minute, by kind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn idle_requests() {
    for count in [1, 3] {
        let store = Arc::new(object_store::memory::InMemory::new());
        let world = World::new(
            store,
            None,
            Way::hub(),
            1,
            jindou_replicas::Settings::default(),
        );
        let mut servers = Vec::new();
        for index in 0..count {
            servers.push(world.new_server(index, true).await);
        }
        world.update().await;
        seconds(5.0).await;
        world.faulty.kinds.lock().unwrap().clear();
        seconds(60.0).await;
        println!(
            "{count} servers, a minute: {:?}",
            world.faulty.kinds.lock().unwrap()
        );
        world.finish(tokio::task::JoinSet::new(), &servers).await;
    }
}
