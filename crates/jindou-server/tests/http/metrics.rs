//! Metrics: each alert in packaging/prometheus/alerts.yml is made to fire; and the documentation, the alerts and the
//! dashboard name only metrics that exist.

use crate::{MILLION, ask, get, options, serve, store, thousand, until};
use jindou::parse::{Format, Sources};
use jindou::replica::{Bucket, BucketLimits, SharedLog};
use jindou::{
    BackupTarget, CancelToken, Database, Functions, LoadOptions, OpenOptions, Progress,
    ServiceCaller, Sharding, TakeRow,
};
use jindou_server::{Server, TlsFiles};
use jindou_testing::http::{connect, request, send};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ALERTS: &str = include_str!("../../../../packaging/prometheus/alerts.yml");
const DASHBOARD: &str = include_str!("../../../../packaging/grafana/jindou.json");
const OPERATION: &str = include_str!("../../../../docs/operation.md");
const SERVER: &str = include_str!("../../../../docs/server.md");

type Labels = BTreeMap<String, String>;

/// The samples of one request to `/metrics`.
#[derive(Clone, Debug)]
struct Scrape(Vec<(String, Labels, f64)>);

fn scrape(server: &Server) -> Scrape {
    let answer = get(server, "/metrics");
    assert_eq!(answer.status, 200);
    let samples = answer.text().lines().filter(|l| !l.starts_with('#'));
    Scrape(samples.map(sample).collect())
}

/// Parses a line `name{label="value",…} number`.
fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = selector(series);
    (name, labels, value.parse().expect("a number"))
}

fn selector(text: &str) -> (String, Labels) {
    let (name, inside) = text.split_once('{').unwrap_or((text, ""));
    let pairs = inside.trim_end_matches('}').split("\",");
    let labels = pairs.filter_map(|pair| {
        let (label, value) = pair.split_once("=\"")?;
        Some((label.to_owned(), value.trim_end_matches('"').to_owned()))
    });
    (name.to_owned(), labels.collect())
}

impl Scrape {
    fn all(&self, wanted: &str) -> Vec<(Labels, f64)> {
        let (name, labels) = selector(wanted);
        let is_wanted = |(n, l, _): &&(String, Labels, f64)| {
            *n == name && labels.iter().all(|(k, v)| l.get(k) == Some(v))
        };
        let found = self.0.iter().filter(is_wanted);
        found.map(|(_, l, v)| (l.clone(), *v)).collect()
    }

    fn names(&self) -> BTreeSet<&str> {
        self.0.iter().map(|(name, ..)| &**name).collect()
    }
}

/// Evaluates a term of an alert's expression: `time()`, a selector, or `increase(selector[time])`.
fn term(text: &str, before: &Scrape, now: &Scrape) -> Vec<(Labels, f64)> {
    if text == "time()" {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        return vec![(Labels::new(), seconds.as_secs_f64())];
    }
    let Some(inside) = text.strip_prefix("increase(") else {
        return now.all(text);
    };
    let (series, _) = inside.rsplit_once('[').expect("a range");
    let earlier: BTreeMap<Labels, f64> = before.all(series).into_iter().collect();
    let grown = now.all(series).into_iter();
    grown
        .map(|(labels, v)| {
            let had = earlier.get(&labels).copied().unwrap_or(0.0);
            (labels, v - had)
        })
        .collect()
}

/// Evaluates an alert's expression: `TERM [/ TERM | - TERM] > NUMBER`, or with `<`.
fn holds(expression: &str, before: &Scrape, now: &Scrape) -> bool {
    let words: Vec<&str> = expression.split(' ').collect();
    let values = |text| term(text, before, now);
    let (left, comparison, bound) = match words[..] {
        [one, comparison, bound] => (values(one), comparison, bound),
        [one, operator, two, comparison, bound] => {
            let right = values(two);
            let joined = values(one).into_iter().filter_map(|(labels, a)| {
                let same = |(l, _): &&(Labels, f64)| *l == labels || two == "time()";
                let (_, b) = right.iter().find(same)?;
                Some((labels, if operator == "/" { a / b } else { a - b }))
            });
            (joined.collect(), comparison, bound)
        }
        _ => panic!("{expression}"),
    };
    let bound: f64 = bound.parse().expect("a number");
    left.iter().any(|(_, v)| match comparison {
        ">" => *v > bound,
        "<" => *v < bound,
        _ => panic!("{expression}"),
    })
}

/// The names of all alerts with their expressions.
fn alerts() -> BTreeMap<&'static str, &'static str> {
    let mut all = BTreeMap::new();
    let mut name = "";
    for line in ALERTS.lines().map(str::trim) {
        if let Some(alert) = line.strip_prefix("- alert: ") {
            name = alert;
        } else if let Some(expression) = line.strip_prefix("expr: ") {
            all.insert(name, expression);
        }
    }
    all
}

/// Names of the alerts that tests in this file make fire.
const FIRED: [&str; 14] = [
    "JindouBucketRequestsFail",
    "JindouCertificateExpires",
    "JindouJobFailed",
    "JindouLightQueriesSlow",
    "JindouLogFailing",
    "JindouMergesFail",
    "JindouPanics",
    "JindouQueriesFail",
    "JindouQueriesRefused",
    "JindouQueriesTimeOut",
    "JindouQueryMemory",
    "JindouReplicaAlone",
    "JindouReplicaBehind",
    "JindouReplicaCutOff",
];

#[test]
fn each_alert_has_a_test() {
    let names: Vec<&str> = alerts().into_keys().collect();
    assert_eq!(names, FIRED);
    for name in names {
        assert!(OPERATION.contains(name), "docs/operation.md lacks {name}");
    }
}

fn fires(alert: &str, before: &Scrape, now: &Scrape) -> bool {
    assert!(FIRED.contains(&alert));
    holds(alerts()[alert], before, now)
}

/// Waits until an alert fires, after checking that it did not fire before.
fn fire(alert: &str, server: &Server, before: &Scrape) {
    assert!(!fires(alert, before, before), "{alert} fires before");
    until(alert, || fires(alert, before, &scrape(server)));
}

fn update(server: &Server, text: &str) -> u16 {
    crate::update(server, text).status
}

/// A function that sleeps, so that its query takes long.
fn functions() -> Functions {
    Functions::new()
        .with("http://e/sleep", 0..=0, |_| {
            std::thread::sleep(Duration::from_millis(300));
            None
        })
        .unwrap()
}

/// A client for SERVICE that panics.
#[derive(Debug)]
struct Buggy;

impl ServiceCaller for Buggy {
    fn call(
        &self,
        _: &str,
        _: &str,
        _: &[&str],
        _: &CancelToken,
        _: TakeRow<'_>,
    ) -> jindou::Result<()> {
        panic!("out of cheese")
    }
}

#[test]
fn alerts_about_queries_fire() {
    let options = options()
        .with_functions(functions())
        .with_service(Arc::new(Buggy))
        .with_max_queries(1);
    let server = serve(thousand(), options);
    let light = "SELECT ?o { <http://e/s1> <http://e/p> ?o }";
    assert_eq!(ask(&server, light, &[]).status, 200);
    let before = scrape(&server);
    let slow = "SELECT (<http://e/sleep>() AS ?x) { <http://e/s1> <http://e/p> ?o }";
    assert_eq!(ask(&server, slow, &[]).status, 200);
    fire("JindouLightQueriesSlow", &server, &before);
    let panics = "SELECT * { SERVICE <http://e/sparql> { ?s ?p ?o } }";
    assert_eq!(ask(&server, panics, &[]).status, 500);
    fire("JindouPanics", &server, &before);
    fire("JindouQueriesFail", &server, &before);
    let target = format!("/query?timeout=1s&query={}", crate::escape(crate::ENDLESS));
    // While an endless query runs, another query is refused. Sent repeatedly, since the endless one may be refused
    // itself.
    let mut streams = Vec::new();
    until("a refusal", || {
        let mut stream = connect(server.address());
        send(&mut stream, "GET", &target, &[], b"");
        streams.push(stream);
        ask(&server, light, &[]).status == 503
    });
    fire("JindouQueriesRefused", &server, &before);
    fire("JindouQueriesTimeOut", &server, &before);
}

/// The alert about memory fires while answers that their clients do not read hold most of it.
#[test]
fn the_alert_about_memory_fires() {
    let sorted = format!("{MILLION} ORDER BY ?d ?b");
    let held = |memory: u64, check: &dyn Fn(&Server)| {
        let options = options()
            .with_memory(memory)
            .with_query_memory(memory)
            .with_query_temp(0);
        let server = serve(thousand(), options);
        let target = format!("/query?query={}", crate::escape(&sorted));
        let mut stream = connect(server.address());
        send(&mut stream, "GET", &target, &[], b"");
        until("an answer that waits", || {
            let waits = scrape(&server).all("jindou_queries_sending");
            waits.iter().any(|(_, n)| *n > 0.0)
        });
        check(&server);
    };
    let needed = std::cell::Cell::new(0.0);
    held(1 << 30, &|server| {
        let all = scrape(server);
        assert!(!fires("JindouQueryMemory", &all, &all));
        needed.set(all.all("jindou_query_memory_bytes")[0].1);
    });
    held((needed.get() / 0.86) as u64, &|server| {
        let all = scrape(server);
        assert!(
            fires("JindouQueryMemory", &all, &all),
            "{:?}",
            all.all("jindou_query_memory_bytes")
        );
    });
}

/// A mounted small disk, unmounted when this is dropped; `None` if the system does not allow mounting.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().ok()?;
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]);
        let done = mount.arg(dir.path()).output();
        done.is_ok_and(|o| o.status.success()).then_some(Self(dir))
    }

    fn fill(&self) -> PathBuf {
        use std::io::Write;
        let path = self.0.path().join("ballast");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn alerts_about_a_full_disk_fire_and_end() {
    let Some(disk) = Disk::mount() else {
        println!("skipped: no tmpfs can be mounted here");
        return;
    };
    let open = OpenOptions::default().with_create(true);
    let db = Database::open_with(disk.0.path().join("store"), &open).unwrap();
    let target = BackupTarget::folder(disk.0.path().join("backups").to_str().unwrap()).unwrap();
    let options = options().with_writable(true).with_backup_to(target);
    let server = Server::start(db, options).unwrap();
    let long = "x".repeat(20_000);
    let insert = |n: usize| {
        let text = format!("INSERT DATA {{ <http://e/s> <http://e/p> \"{n} {long}\" }}");
        update(&server, &text)
    };
    assert_eq!(insert(0), 200);
    let before = scrape(&server);
    let ballast = disk.fill();
    for n in 1..=240 {
        if insert(n) != 200 {
            break;
        }
        assert!(n < 240, "the disk never fills up");
    }
    fire("JindouLogFailing", &server, &before);
    let post = |path| request(server.address(), "POST", path, &[], b"").status;
    assert_ne!(post("/admin/merge"), 200);
    fire("JindouMergesFail", &server, &before);
    assert_eq!(post("/admin/backup"), 202);
    fire("JindouJobFailed", &server, &before);
    assert_eq!(get(&server, "/ready").status, 503);
    // Once there is space, the alert ends without an update.
    std::fs::remove_file(ballast).unwrap();
    let now = scrape(&server);
    assert!(!fires("JindouLogFailing", &before, &now));
    assert_eq!(insert(241), 200);
}

/// A certificate whose validity ends this many seconds from now.
fn certificate(folder: &Path, ends: i64) -> TlsFiles {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let end = now.checked_add_signed(ends).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    // Rounded down to the beginning of a day, which is precise enough.
    let days = end / 86_400;
    let of = Command::new("date")
        .args(["-u", "-d", &format!("@{}", days * 86_400), "+%Y %m %d"])
        .output()
        .unwrap();
    let of = String::from_utf8(of.stdout).unwrap();
    let of: Vec<i32> = of.split_whitespace().map(|n| n.parse().unwrap()).collect();
    params.not_after = rcgen::date_time_ymd(of[0], of[1] as u8, of[2] as u8);
    let key = rcgen::KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    let (cert, secret) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.pem()).unwrap();
    std::fs::write(&secret, key.serialize_pem()).unwrap();
    TlsFiles::new(cert, secret)
}

#[test]
fn the_alert_about_certificates_fires_and_there_are_warnings() {
    const DAY: i64 = 86_400;
    let folder = tempfile::tempdir().unwrap();
    let data = store("<http://e/a> <http://e/p> 1 .");
    for (ends, fire, told) in [
        (-10 * DAY, true, Some("expired at")),
        (5 * DAY, true, Some("expires at")),
        (400 * DAY, false, None),
    ] {
        let files = certificate(folder.path(), ends);
        let options = options().with_tls(files);
        let warnings = options.warnings().join("; ");
        assert_eq!(
            told.is_some(),
            warnings.contains("TLS certificate"),
            "{warnings}"
        );
        assert!(warnings.contains(told.unwrap_or_default()), "{warnings}");
        let server = serve(&data, options);
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .tls_config(jindou::service::unverified_tls_config())
            .build()
            .into();
        let url = format!("https://localhost:{}/metrics", server.address().port());
        let text = agent.get(&url).call().unwrap().body_mut().read_to_string();
        let text = text.unwrap();
        let samples = text.lines().filter(|l| !l.starts_with('#')).map(sample);
        let all = Scrape(samples.collect());
        assert_eq!(
            fires("JindouCertificateExpires", &all, &all),
            fire,
            "{ends}"
        );
    }
}

/// Starts a server of a replicated store, with the shared log in a directory.
fn replica(log: &Path, folder: &Path, name: &str, port: Option<u16>) -> Server {
    let bucket = Bucket::directory(log, BucketLimits::default()).unwrap();
    let mut shared = SharedLog::new(bucket, name);
    shared.peer_address = port.map(|port| format!("127.0.0.1:{port}"));
    let db = Database::open_with(folder.join(name), &OpenOptions::default().with_log(shared));
    Server::start(db.unwrap(), options().with_writable(true)).unwrap()
}

/// A server that has both shards of a store.
fn server_of_shards(folder: &Path) -> Server {
    let text = "<http://e/a> <http://e/p> 1 .";
    let source = Sources::builder().text("data.ttl", text.as_bytes(), Format::Turtle);
    let load = LoadOptions::default().with_sharding(Some(Sharding::new(2)));
    let (source, progress) = (source.build().unwrap(), Progress::default());
    Database::load(folder.join("shards"), &source, &load, &progress).unwrap();
    replica(&folder.join("log-of-shards"), folder, "shards", None)
}

#[test]
fn alerts_about_replicas_fire() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let ports = [0; 3].map(|_| jindou_testing::free_port());
    let start = |n: usize| {
        let name = ["one", "two", "three"][n];
        replica(&log, folder.path(), name, Some(ports[n]))
    };
    let (one, two) = (start(0), start(1));
    let three = start(2);
    let expression = alerts()["JindouReplicaAlone"];
    until("contact", || {
        let now = scrape(&one);
        !holds(expression, &now, &now)
    });
    assert_eq!(
        update(&two, "INSERT DATA { <http://e/a> <http://e/p> 1 }"),
        200
    );
    let before = scrape(&one);
    drop(three);
    fire("JindouReplicaAlone", &one, &before);
    drop(two);
    // The next group's file contains nonsense, so the server cannot apply it and falls behind.
    let groups = std::fs::read_dir(log.join("log")).unwrap();
    let mut groups: Vec<String> = groups
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".log"))
        .collect();
    groups.sort();
    let newest = groups.pop().expect("a group");
    let (epoch, number) = newest.trim_end_matches(".log").split_once('-').unwrap();
    let next = u64::from_str_radix(number, 16).unwrap() + 1;
    let before = scrape(&one);
    std::fs::write(log.join(format!("log/{epoch}-{next:016x}.log")), "nonsense").unwrap();
    fire("JindouReplicaBehind", &one, &before);
    let before = scrape(&one);
    // The bucket is unreachable.
    std::fs::rename(&log, folder.path().join("away")).unwrap();
    fire("JindouBucketRequestsFail", &one, &before);
    fire("JindouReplicaCutOff", &one, &before);
}

#[test]
fn documents_alerts_and_the_dashboard_name_metrics_that_exist() {
    let data = store("<http://e/a> <http://e/p> 1 .");
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&data, options().with_writable(true));
    // Metrics with labels exist only once they have counted something.
    ask(&server, "ASK {}", &[]);
    update(&server, "INSERT DATA { <http://e/b> <http://e/p> 1 }");
    request(server.address(), "POST", "/admin/recluster", &[], b"");
    until("a job", || {
        !scrape(&server).all("jindou_jobs_total").is_empty()
    });
    let own = scrape(&server);
    let log = folder.path().join("log");
    let start = |name| {
        let port = jindou_testing::free_port();
        replica(&log, folder.path(), name, Some(port))
    };
    let (one, _two) = (start("one"), start("two"));
    until("one knows two", || {
        let named = scrape(&one);
        !named.all("jindou_replica_server_group").is_empty()
    });
    let other = scrape(&one);
    let of_shards = scrape(&server_of_shards(folder.path()));
    let mut known: BTreeSet<&str> = own.names();
    known.extend(other.names());
    known.extend(of_shards.names());
    known.insert("jindou_tls_certificate_expiry_timestamp_seconds");
    let families: BTreeSet<String> = known
        .iter()
        .filter_map(|n| n.strip_suffix("_count"))
        .map(str::to_owned)
        .collect();
    for (place, text) in [
        ("alerts", ALERTS),
        ("dashboard", DASHBOARD),
        ("operation.md", OPERATION),
        ("server.md", SERVER),
    ] {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
        let words = text.split(|c: char| !is_name(c));
        let named = words.filter(|w| {
            (w.starts_with("jindou_") || w.starts_with("process_")) && !w.ends_with('_')
        });
        for name in named {
            assert!(
                known.contains(name) || families.contains(name),
                "{place} names {name}, which does not exist"
            );
        }
    }
    for (name, ..) in &own.0 {
        let family = name
            .trim_end_matches("_bucket")
            .trim_end_matches("_sum")
            .trim_end_matches("_count");
        let is_documented = SERVER.contains(name.as_str()) || SERVER.contains(family);
        assert!(is_documented, "docs/server.md lacks {name}");
    }
    let build = own.all("jindou_build_info");
    assert_eq!(build[0].0["version"], env!("CARGO_PKG_VERSION"));
    let started = own.all("process_start_time_seconds")[0].1;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64();
    assert!((0.0..600.0).contains(&(now - started)), "{started}");
}
