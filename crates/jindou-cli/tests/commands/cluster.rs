//! Several servers over the shards of one store: answers, and what becomes of them when a server dies, is stopped or is a stranger.

use super::run::{good, jindou, run};
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Writes LUBM(1) to `d.nt`.
fn write_university(folder: &Path) {
    let mut file = fs::File::create(folder.join("d.nt")).unwrap();
    write_source(&Lubm::new(1, 0), TagCase::Lower, &mut file).unwrap();
}

/// A server of the cluster: its URL and its process.
struct Server {
    url: String,
    process: i32,
}

impl Server {
    fn signal(&self, signal: i32) {
        // SAFETY: the call takes no memory; the process is a server that this test has started.
        assert_eq!(unsafe { libc::kill(self.process, signal) }, 0);
    }

    /// Status and body of an answer.
    fn ask(&self, query: &str) -> (u16, String) {
        self.get("query", &[("query", query)], "text/csv")
    }

    fn get(&self, route: &str, parameters: &[(&str, &str)], accept: &str) -> (u16, String) {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(Duration::from_secs(20)));
        let agent: ureq::Agent = config.build().into();
        let mut request = agent.get(self.url.replace("/query", &format!("/{route}")));
        for (name, value) in parameters {
            request = request.query(*name, *value);
        }
        let mut response = request.header("accept", accept).call().unwrap();
        let status = response.status().as_u16();
        (status, response.body_mut().read_to_string().unwrap())
    }

    fn rows(&self, query: &str) -> u64 {
        let (status, body) = self.ask(query);
        assert_eq!(status, 200, "{body}");
        body.lines().count() as u64 - 1
    }

    /// Waits until a search has this status, and returns its answer.
    fn search_comes_to(&self, status: u16) -> String {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let (got, body) = self.get("search", &[("q", "some one")], "application/json");
            if got == status {
                return body;
            }
            assert!(Instant::now() < until, "{got}: {body}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until it answers.
    fn answers(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let (status, body) = self.ask(ALL);
            if status == 200 {
                return;
            }
            assert!(Instant::now() < until, "{body}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asserts that a query fails in time, with these words.
    fn fails(&self, words: &[&str]) {
        let begun = Instant::now();
        let (status, body) = self.ask(ALL);
        let took = begun.elapsed();
        assert!(status >= 400, "{status}: {body}");
        assert!(took < Duration::from_secs(15), "{took:?}");
        for word in words {
            assert!(body.contains(word), "no {word} in {body}");
        }
    }

    /// Waits until queries fail with these words.
    fn comes_to_fail(&self, word: &str) {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let (status, body) = self.ask(ALL);
            if status >= 400 && body.contains(word) {
                return;
            }
            assert!(Instant::now() < until, "{body}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Reads from all shards, and has no row before it has read all.
const ALL: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> \
                   SELECT (COUNT(?n) AS ?names) { ?x ub:memberOf ?d . ?x ub:name ?n . ?d ub:subOrganizationOf ?u }";

/// A process and where it writes its log.
struct Running(Child, PathBuf);

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the call takes no memory; the child was not waited for.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
        if std::thread::panicking() {
            // A server that has died is named there; those that miss it say so at each query.
            let log = fs::read_to_string(&self.1).unwrap_or_default();
            for line in log.lines().filter(|l| !l.contains("query failed")) {
                eprintln!("{}: {line}", self.1.display());
            }
        }
    }
}

/// A new file for the log of a process.
fn log(folder: &Path) -> (PathBuf, fs::File) {
    let count = fs::read_dir(folder).unwrap().count();
    let path = folder.join(format!("log-{count}"));
    let file = fs::File::create_new(&path).unwrap();
    (path, file)
}

fn start(folder: &Path, store: &str, fabric: &str) -> (Running, Vec<Server>) {
    start_servers(folder, store, fabric, 2)
}

fn start_servers(folder: &Path, store: &str, fabric: &str, count: usize) -> (Running, Vec<Server>) {
    let (path, file) = log(folder);
    let mut child = jindou(folder)
        .args([
            "cluster",
            "start",
            "--store",
            store,
            "--servers",
            &count.to_string(),
            "--port",
            "0",
            "--fabric",
            fabric,
        ])
        .stdout(Stdio::piped())
        .stderr(file)
        .spawn()
        .unwrap();
    let mut servers = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while servers.len() < count {
        let line = lines.next().expect("a line a server").unwrap();
        // server-0: http://127.0.0.1:…/query, process …, shards …
        let Some((_, rest)) = line.split_once(": http") else {
            continue;
        };
        let mut parts = rest.split(", ");
        let url = format!("http{}", parts.next().unwrap());
        let process = parts.next().unwrap().strip_prefix("process ").unwrap();
        servers.push(Server {
            url,
            process: process.parse().unwrap(),
        });
    }
    // Its servers write there, too.
    std::thread::spawn(move || lines.for_each(drop));
    (Running(child, path), servers)
}

/// One server by itself, until it is dropped.
fn serve(folder: &Path, store: &str, file: &str, url: &str) -> Running {
    let port = url
        .rsplit(':')
        .next()
        .unwrap()
        .strip_suffix("/query")
        .unwrap();
    let (path, written) = log(folder);
    let child = jindou(folder)
        .args([
            "serve",
            "--store",
            store,
            "--cluster",
            file,
            "--server",
            "server-1",
        ])
        .args(["--port", port, "--log-level", "error"])
        .stdout(Stdio::null())
        .stderr(written)
        .spawn()
        .unwrap();
    Running(child, path)
}

fn wait_for_http(url: &str) {
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/query")
        .unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < until, "nothing listens at {address}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// True if all servers of a file are alive; and what the command prints about them.
fn status(folder: &Path, file: &str) -> (bool, String) {
    let o = run(folder, &["cluster", "status", file]);
    (o.status.success(), String::from_utf8(o.stdout).unwrap())
}

/// Opens connections that send arbitrary bytes; some then close their sending side.
fn send_noise(address: &str) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for i in 0..20_usize {
        let mut stream = TcpStream::connect(address).unwrap();
        let noise: Vec<u8> = (0..i * 100).map(|b| (b * 31 + i) as u8).collect();
        let _ = stream.write_all(&noise);
        if i % 2 == 0 {
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
        held.push(stream);
    }
    held
}

/// A server with another token, and one with another certificate, are told apart from members. `text` is the file of
/// the running cluster.
fn strangers_are_refused(folder: &Path, text: &str) {
    let token = text.lines().next().unwrap();
    let forged = text.replace(token, "token = \"0123456789abcdef\"");
    fs::write(folder.join("s/cluster/forged.toml"), forged).unwrap();
    let (all, said) = status(folder, "s/cluster/forged.toml");
    assert!(
        !all && said.matches("the token differs").count() == 2,
        "{said}"
    );
    fs::write(
        folder.join("e.nt"),
        "<http://e/a> <http://e/b> <http://e/c> .\n",
    )
    .unwrap();
    good(
        folder,
        &["load", "--shards", "4", "--store", "t", "d.nt", "e.nt"],
    );
    let (other, _) = start(folder, "t", "tls");
    drop(other);
    fs::write(folder.join("t/cluster/forged.toml"), text).unwrap();
    let (all, said) = status(folder, "t/cluster/forged.toml");
    assert!(!all && said.matches("not alive").count() == 2, "{said}");
}

#[test]
fn servers_answer_together_and_fail_with_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_university(folder);
    good(folder, &["load", "--shards", "4", "--store", "s", "d.nt"]);
    let (_cluster, servers) = start(folder, "s", "tls");
    let [one, two] = &servers[..] else {
        panic!("two servers")
    };
    for server in [one, two] {
        wait_for_http(&server.url);
        server.answers();
        for q in &QUERIES {
            if let Some(want) = q.rows(1) {
                assert_eq!(server.rows(q.text), want, "{}", q.name);
            }
        }
    }
    let file = "s/cluster/cluster.toml";
    let (all, said) = status(folder, file);
    assert!(all && said.matches(": alive at").count() == 2, "{said}");
    assert!(
        said.contains("shards [0, 1]") && said.contains("shards [2, 3]"),
        "{said}"
    );

    let text = fs::read_to_string(folder.join(file)).unwrap();
    let peer = |i: usize| {
        let mut lines = text.lines().filter_map(|l| l.strip_prefix("address = "));
        lines.nth(i).unwrap().trim_matches('"').to_owned()
    };
    let _held = send_noise(&peer(1));
    one.answers();
    assert!(two.ask(ALL).0 == 200);
    strangers_are_refused(folder, &text);

    // Stopped: silent, and back.
    two.signal(libc::SIGSTOP);
    one.comes_to_fail("server-1");
    one.fails(&["server-1", &peer(1)]);
    two.signal(libc::SIGCONT);
    one.answers();

    // Killed, replaced by one of another load, and back.
    two.signal(libc::SIGKILL);
    one.fails(&["server-1", &peer(1)]);
    let stranger = serve(folder, "t", file, &two.url);
    one.comes_to_fail("another load");
    drop(stranger);
    let _again = serve(folder, "s", file, &two.url);
    one.answers();
    wait_for_http(&two.url);
    two.answers();
    for q in &QUERIES {
        if let Some(want) = q.rows(1) {
            assert_eq!(two.rows(q.text), want, "{}", q.name);
        }
    }

    // No part of an update is done.
    let o = run(
        folder,
        &[
            "serve",
            "--store",
            "s",
            "--cluster",
            file,
            "--server",
            "server-1",
            "--writable",
        ],
    );
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(
        !o.status.success() && err.contains("cannot be updated yet"),
        "{err}"
    );
}

/// The answer of a search without the time that it took, and without what differs by store and not by answer.
fn found(document: &str) -> serde_json::Value {
    let mut document: serde_json::Value = serde_json::from_str(document).expect(document);
    let parts = document.as_object_mut().unwrap();
    assert!(parts.remove("ms").is_some_and(|ms| ms.is_number()));
    assert!(parts.remove("indexed").is_some_and(|i| i.is_boolean()));
    document
}

/// The command and each of three servers find by words what the command finds in the whole store.
#[test]
fn each_server_searches_all_shards() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut text = String::from(
        "@prefix : <http://e/> . @prefix l: <http://www.w3.org/2000/01/rdf-schema#> .\n\
         :knows l:label \"acquainted with\" . :Person l:label \"human being\"@en .\n",
    );
    for n in 0..60 {
        text += &format!(
            ":person{n} a :Person ; l:label \"Some One {n}\"@en, \"Irgendwer {n}\"@de ; :knows :person{} .\n",
            n / 2
        );
    }
    fs::write(folder.join("d.ttl"), text).unwrap();
    good(folder, &["load", "--store", "whole", "d.ttl"]);
    let indexed = ["load", "--text", "--shards", "4", "--store", "s", "d.ttl"];
    good(folder, &indexed);
    good(folder, &["load", "--shards", "4", "--store", "t", "d.ttl"]);
    good(folder, &["check", "--store", "s"]);
    assert!(folder.join("s/shard-3/index-text.jd").exists());
    let questions = ["some one", "irgendwer 4", "person", "acquainted", "nothing"];
    let by_command = |store: &str, words: &str| {
        let more = ["--format", "json", "--lang", "de", "--timeout", "60s"];
        let args = [&["search", "--store", store, words][..], &more].concat();
        let o = run(folder, &args);
        let err = String::from_utf8_lossy(&o.stderr);
        assert!(o.status.success(), "{args:?}: {err}");
        found(&String::from_utf8(o.stdout).unwrap())
    };
    for words in questions {
        let want = by_command("whole", words);
        assert_eq!(want["complete"], true);
        assert_eq!(by_command("s", words), want, "{words}");
        assert_eq!(by_command("t", words), want, "{words}");
    }
    for store in ["s", "t"] {
        let (_cluster, servers) = start_servers(folder, store, "tls", 3);
        let json = "application/json";
        for server in &servers {
            wait_for_http(&server.url);
            // Its peers may not be there yet.
            server.search_comes_to(200);
            for words in questions {
                let parameters = [("q", words), ("lang", "de"), ("timeout", "2s")];
                let (status, body) = server.get("search", &parameters, json);
                assert_eq!(status, 200, "{body}");
                assert_eq!(found(&body), by_command("whole", words), "{words}");
            }
            for (text, item) in [
                ("PREFIX : <http://e/> SELECT * { ?x acquainted", ":knows"),
                ("PREFIX : <http://e/> SELECT * { ?x a human", ":Person"),
                (
                    "PREFIX : <http://e/> SELECT * { ?x :knows Irgendwer",
                    ":person0",
                ),
            ] {
                let parameters = [("text", text), ("timeout", "1s"), ("limit", "200")];
                let (status, body) = server.get("complete", &parameters, json);
                assert_eq!(status, 200, "{body}");
                let items: serde_json::Value = serde_json::from_str(&body).unwrap();
                let mut all = items["items"].as_array().unwrap().iter();
                let is = |i: &serde_json::Value| i["text"] == item && i["label"].is_string();
                assert!(all.any(is), "{text}: {body}");
            }
            let parameters = [("iri", "http://e/person7"), ("lang", "de")];
            let (_, body) = server.get("labels", &parameters, json);
            assert!(body.contains("Irgendwer 7"), "{body}");
            let (_, described) = server.get("query", &[], "text/turtle");
            assert!(described.contains("urn:jindou:feature:search"));
        }
        servers[2].signal(libc::SIGKILL);
        let body = servers[0].search_comes_to(503);
        assert!(body.contains("server-2"), "{body}");
    }
}

/// Seconds of processor time that a process has taken.
fn processor_time(process: i32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let ticks = |i: usize| {
        rest.split_whitespace()
            .nth(i)
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    // SAFETY: the call takes no memory.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    (ticks(11) + ticks(12)) / a_second as f64
}

#[test]
fn servers_over_shared_memory_answer_fail_and_come_back() {
    if let Err(e) = jindou::cluster::transport::ucx::available() {
        println!("skipped: {e}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_university(folder);
    good(folder, &["load", "--shards", "4", "--store", "s", "d.nt"]);
    let (cluster, servers) = start(folder, "s", "ucx");
    let [one, two] = &servers[..] else {
        panic!("two servers")
    };
    let right = |server: &Server| {
        for q in &QUERIES {
            if let Some(want) = q.rows(1) {
                assert_eq!(server.rows(q.text), want, "{}", q.name);
            }
        }
    };
    for server in [one, two] {
        wait_for_http(&server.url);
        server.answers();
        right(server);
    }
    let file = "s/cluster/cluster.toml";
    let o = run(folder, &["cluster", "status", file]);
    let said = String::from_utf8(o.stdout).unwrap();
    assert!(
        o.status.success() && said.matches("(UCX at port ").count() == 2,
        "{said}"
    );

    // Stopped: silent, and back.
    two.signal(libc::SIGSTOP);
    // Its threads stop one after the other, and an answer may come in between.
    one.comes_to_fail("server-1");
    one.fails(&["server-1"]);
    two.signal(libc::SIGCONT);
    one.answers();
    right(one);

    // Killed while it is asked.
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                let (status, body) = one.ask(ALL);
                assert!(status == 200 || body.contains("server-1"), "{body}");
            }
        });
        std::thread::sleep(Duration::from_millis(300));
        two.signal(libc::SIGKILL);
        std::thread::sleep(Duration::from_millis(300));
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    one.fails(&["server-1"]);
    // What is left of the lane costs nothing.
    let before = processor_time(one.process);
    std::thread::sleep(Duration::from_secs(2));
    let took = processor_time(one.process) - before;
    assert!(took < 0.5, "{took} s of processor time in 2 s of peace");
    let _again = serve(folder, "s", file, &two.url);
    one.answers();
    wait_for_http(&two.url);
    two.answers();
    right(two);
    right(one);
    drop(cluster);

    // A cluster file for TLS is not taken for one with UCX.
    let text = fs::read_to_string(folder.join(file)).unwrap();
    fs::write(folder.join(file), text.replace("\"ucx\"", "\"tls\"")).unwrap();
    let o = run(
        folder,
        &[
            "cluster",
            "start",
            "--store",
            "s",
            "--servers",
            "2",
            "--fabric",
            "ucx",
        ],
    );
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(!o.status.success() && err.contains("made for TLS"), "{err}");
}
