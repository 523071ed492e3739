//! Several servers with some shards of one store each, over one log: answers, and what becomes of them when a server dies or
//! is stopped.

use super::run::{eventually, good, jindou, until};
use jindou_parse::write::{TagCase, write_source};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use std::collections::BTreeSet;
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
        eventually(|| {
            let (got, body) = self.get("search", &[("q", "some one")], "application/json");
            match got == status {
                true => Ok(body),
                false => Err(format!("{got}: {body}")),
            }
        })
    }

    /// Waits until a query's status and body are these.
    fn comes_to(&self, wanted: impl Fn(u16, &str) -> bool) {
        eventually(|| {
            let (status, body) = self.ask(ALL);
            match wanted(status, &body) {
                true => Ok(()),
                false => Err(format!("{status}: {body}")),
            }
        });
    }

    /// Asserts that a parameter's term is found, at whatever shard it is: the answer is that with the term in the text.
    fn finds_values(&self) {
        let query = "SELECT ?p ?o { ?s ?p ?o }";
        for n in 0..40 {
            let student = format!("<http://www.Department0.University0.edu/GraduateStudent{n}>");
            let values = [("query", query), ("$s", &*student)];
            let (status, got) = self.get("query", &values, "text/csv");
            let (_, want) = self.ask(&query.replace("?s", &student));
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
            assert_eq!((status, lines(&got)), (200, lines(&want)), "{student}");
            assert!(want.lines().count() > 3, "{want}");
        }
    }

    /// Waits until it answers.
    fn answers(&self) {
        self.comes_to(|status, _| status == 200);
    }

    /// Waits until queries fail with this word.
    fn comes_to_fail(&self, word: &str) {
        self.comes_to(|status, body| status >= 400 && body.contains(word));
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

/// Starts servers that have each shard once, with the log `STORE-log`.
fn start(folder: &Path, store: &str, count: usize) -> (Running, Vec<Server>) {
    let (path, file) = log(folder);
    let mut child = jindou(folder)
        .args(["cluster", "start", "--store", store, "--port", "0"])
        .args(["--log", &format!("{store}-log")])
        .args(["--servers", &count.to_string()])
        .stdout(Stdio::piped())
        .stderr(file)
        .spawn()
        .unwrap();
    let mut servers = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while servers.len() < count {
        let line = lines.next().expect("a line a server").unwrap();
        // one: http://127.0.0.1:…/query, process …, store …
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

/// The server `two` of the store `s` by itself, until it is dropped.
fn serve_two(folder: &Path, url: &str, peer: &str) -> Running {
    let port = url
        .rsplit(':')
        .next()
        .unwrap()
        .strip_suffix("/query")
        .unwrap();
    let (path, written) = log(folder);
    let child = jindou(folder)
        .args(["serve", "--store", "s/servers/two", "--log", "s-log"])
        .args(["--name", "two", "--peer-address", peer])
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
    until(|| TcpStream::connect(address).is_ok());
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

#[test]
fn servers_answer_together_and_fail_with_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_university(folder);
    good(folder, &["load", "--shards", "4", "--store", "s", "d.nt"]);
    let (_cluster, servers) = start(folder, "s", 2);
    let [one, two] = &servers[..] else {
        panic!("two servers")
    };
    let right = |server: &Server| {
        for q in &QUERIES {
            if let Some(want) = q.rows(1) {
                assert_eq!(server.rows(q.text), want, "{}", q.name);
            }
        }
        server.finds_values();
    };
    for server in [one, two] {
        wait_for_http(&server.url);
        server.answers();
        right(server);
    }
    let said = good(folder, &["cluster", "status", "--log", "s-log"]);
    assert!(said.contains(", shards 0, 2, entry written"), "{said}");
    let peer = said.split_once("two: at ").unwrap().1;
    let peer = peer.split_once(',').unwrap().0;
    let _held = send_noise(peer);
    one.answers();
    assert!(two.ask(ALL).0 == 200);

    // Stopped: silent, and back.
    two.signal(libc::SIGSTOP);
    one.comes_to_fail("server two");
    one.fails(&["server two"]);
    two.signal(libc::SIGCONT);
    one.answers();

    // Killed, and back.
    two.signal(libc::SIGKILL);
    one.fails(&["server two"]);
    let _again = serve_two(folder, &two.url, peer);
    one.answers();
    wait_for_http(&two.url);
    two.answers();
    right(two);
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
        found(&good(folder, &args))
    };
    for words in questions {
        let want = by_command("whole", words);
        assert_eq!(want["complete"], true);
        assert_eq!(by_command("s", words), want, "{words}");
        assert_eq!(by_command("t", words), want, "{words}");
    }
    for store in ["s", "t"] {
        let (_cluster, servers) = start(folder, store, 3);
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
        assert!(body.contains("server three"), "{body}");
    }
}
