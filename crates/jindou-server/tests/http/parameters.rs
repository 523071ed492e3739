//! Parameters of all routes, in the URL and in the body; the requests are generated from the table in docs/server.md.

use crate::{options, serve, store};
use jindou::BackupTarget;
use jindou_server::Server;
use jindou_testing::http::{Answer, escape, request};
use std::collections::{BTreeMap, BTreeSet};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// Routes whose body is not a form, so that parameters must be in the URL.
const URL_ONLY: [&str; 3] = ["/batch", "/store", "/admin/queries"];
/// Parameters that may occur more than once, or under several names.
const SEVERAL: [&str; 7] = [
    "default-graph-uri",
    "named-graph-uri",
    "using-graph-uri",
    "using-named-graph-uri",
    "parameter",
    "format",
    "iri",
];

/// For each parameter in the documentation's table, all of its names, and its routes.
fn documented() -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let page = include_str!("../../../../docs/server.md");
    let (_, rest) = page.split_once("| parameter | routes | meaning |").unwrap();
    let spans = |cell: &str| -> Vec<String> {
        let odd = cell.split('`').skip(1).step_by(2);
        odd.map(str::to_owned).collect()
    };
    let mut all = BTreeMap::new();
    for line in rest.lines().skip(2).take_while(|l| l.starts_with('|')) {
        let mut cells = line.trim_matches('|').splitn(3, " | ");
        let (name, routes, meaning) = (
            cells.next().unwrap(),
            cells.next().unwrap(),
            cells.next().unwrap(),
        );
        let mut names: BTreeSet<String> = spans(name).into_iter().collect();
        let first = spans(name).swap_remove(0);
        if let Some(("", others)) = meaning
            .split_once("(also ")
            .map(|(before, after)| (before, after.split(')').next().unwrap()))
        {
            names.extend(spans(others));
        }
        all.insert(first, (names, spans(routes).into_iter().collect()));
    }
    all
}

#[test]
fn the_documentation_has_the_servers_table() {
    let known: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = jindou_server::parameters()
        .iter()
        .map(|(names, routes)| {
            let names: BTreeSet<String> = names.iter().map(|n| (*n).to_owned()).collect();
            let first = jindou_server::parameters()
                .iter()
                .find(|(n, _)| n.iter().all(|n| names.contains(*n)))
                .map(|(n, _)| n[0].to_owned());
            let routes = routes.split(' ').map(str::to_owned).collect();
            (first.unwrap(), (names, routes))
        })
        .collect();
    assert_eq!(documented(), known);
}

struct World {
    server: Server,
    prepared: String,
    _backups: tempfile::TempDir,
    _data: crate::Store,
}

impl World {
    fn new() -> Self {
        let data = store(
            "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
             <http://e/a> <http://e/p> 1 ; rdfs:label \"apple\"@en , \"Apfel\"@de .
             <http://e/g> { <http://e/b> <http://e/p> 2 ; <http://e/only> 3 ; rdfs:label \"pear\"@en }
             <http://e/h> { <http://e/c> <http://e/p> 3 ; rdfs:label \"plum\"@en }",
        );
        let backups = tempfile::tempdir().unwrap();
        let target = BackupTarget::folder(backups.path().to_str().unwrap()).unwrap();
        let server = serve(&data, options().with_writable(true).with_backup_to(target));
        let body = format!(
            "query={}&parameter=x",
            escape("SELECT * { ?x <http://e/p> ?y }")
        );
        let made = request(
            server.address(),
            "POST",
            "/prepared",
            &[FORM],
            body.as_bytes(),
        );
        let id = made.json()["id"].as_str().unwrap().to_owned();
        Self {
            server,
            prepared: format!("/prepared/{id}"),
            _backups: backups,
            _data: data,
        }
    }

    /// Sends a request with some parameters in the URL, and others in the body if that is a form.
    fn ask(&self, route: &str, url: &[(&str, &str)], body: &[(&str, &str)]) -> Answer {
        let joined = |all: &[(&str, &str)]| {
            let all = all
                .iter()
                .map(|(n, v)| format!("{}={}", escape(n), escape(v)));
            all.collect::<Vec<_>>().join("&")
        };
        let path = match route {
            "/prepared/ID" => &self.prepared,
            route => route,
        };
        let to = self.server.address();
        if !URL_ONLY.contains(&route) {
            let target = format!("{path}?{}", joined(url));
            return request(to, "POST", &target, &[FORM], joined(body).as_bytes());
        }
        let target = format!("{path}?{}", joined(&[url, body].concat()));
        match route {
            "/batch" => request(
                to,
                "POST",
                &target,
                &[("content-type", "application/json")],
                b"[]",
            ),
            "/store" if target.contains("lenient") => {
                request(to, "POST", &target, &[("content-type", "text/turtle")], b"")
            }
            _ => request(to, "GET", &target, &[], b""),
        }
    }
}

/// Parameters without which the route refuses a request with the tested parameter.
fn base(route: &str, parameter: &str) -> Vec<(&'static str, &'static str)> {
    let all: &[(&str, &str)] = match route {
        "/query" => &[("query", "SELECT * { ?x <http://e/p> ?y }")],
        "/prepared" => &[("query", "SELECT * { ?x <http://e/p> ?y }")],
        "/prepared/ID" => &[("$x", "<http://e/a>")],
        "/update" => &[(
            "update",
            "INSERT { [] <http://e/q> ?o } WHERE { ?s <http://e/p> ?o }",
        )],
        "/complete" => &[("text", "SELECT * { ?x <http://e/p> ?y . ?x ")],
        "/search" => &[("q", "apple")],
        "/labels" => &[("iri", "http://e/a")],
        "/store" if parameter == "lenient" => &[("default", "")],
        _ => &[],
    };
    let others = all
        .iter()
        .filter(|(name, _)| *name != parameter && !(parameter == "$name" && *name == "$x"));
    others.copied().collect()
}

/// A valid value of the parameter.
fn value(parameter: &str) -> &'static str {
    match parameter {
        "query" => "ASK {}",
        "update" => "CLEAR DEFAULT",
        "graphs" => "default",
        "$name" => "<http://e/a>",
        "timeout" | "limit" | "keep" => "5",
        "memory" => "33554432",
        "wait" => "3000",
        "explain" | "why-empty" | "profile" | "watch" | "lenient" | "labels" => "false",
        "graph" => "http://e/g",
        _ => "a",
    }
}

/// If a parameter is given both in the URL and in the body, the error that it is given twice shows that the route reads
/// both.
#[test]
fn every_parameter_is_read_from_the_url_and_the_body() {
    let world = World::new();
    for (name, (_, routes)) in documented() {
        if SEVERAL.contains(&&*name) {
            continue;
        }
        let sent = if name == "$name" { "$x" } else { &*name };
        for route in &routes {
            let own = [(sent, value(&name))];
            let rest = [&base(route, &name)[..], &own].concat();
            let refused = world.ask(route, &own, &rest);
            let told = refused.text();
            assert_eq!(refused.status, 400, "{route} {name}: {told}");
            assert!(
                told.contains("is given 2 times") || told.contains("is given twice"),
                "{route} {name}: {told}"
            );
        }
    }
}

/// The response as text, without parts that differ between equal requests.
fn essence(answer: &Answer) -> String {
    fn strip(value: &mut serde_json::Value) {
        if let Some(object) = value.as_object_mut() {
            for name in ["ms", "snapshot", "id"] {
                object.remove(name);
            }
            object.values_mut().for_each(strip);
        } else if let Some(list) = value.as_array_mut() {
            list.iter_mut().for_each(strip);
        }
    }
    let text = match serde_json::from_slice::<serde_json::Value>(&answer.body) {
        Ok(mut value) => {
            strip(&mut value);
            value.to_string()
        }
        Err(_) => answer.text().to_owned(),
    };
    format!("{} {} {text}", answer.status, answer.header("content-type"))
}

#[test]
fn those_that_may_occur_several_times_have_the_same_effect_in_both() {
    let world = World::new();
    for (name, (names, routes)) in documented() {
        if !SEVERAL.contains(&&*name) {
            continue;
        }
        for (route, sent) in routes
            .iter()
            .flat_map(|route| names.iter().map(move |name| (route, name)))
        {
            if URL_ONLY.contains(&&**route) {
                continue;
            }
            let value = match &*name {
                "parameter" => "y",
                "format" => "csv",
                "iri" => "http://e/a",
                _ if name.starts_with("using") => "http://e/none",
                _ => "http://e/g",
            };
            let rest = base(route, &name);
            let own = [(&**sent, value)];
            let in_url = essence(&world.ask(route, &own, &rest));
            let in_body = essence(&world.ask(route, &[], &[&rest[..], &own].concat()));
            let without = essence(&world.ask(route, &[], &rest));
            assert_eq!(in_url, in_body, "{route} {sent}");
            assert_ne!(in_body, without, "{route} {sent}");
        }
    }
}
