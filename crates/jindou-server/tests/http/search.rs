//! Search and labels over HTTP.

use crate::{Store, options, serve, store, until};
use jindou_server::{Server, ServerOptions};
use jindou_testing::http::{Answer, escape, request};
use std::sync::OnceLock;

fn planets() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(|| {
        store(
            "@prefix l: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <http://e/> .
            :q1 a :Planet ; l:label \"Mars\"@en , \"Mars\"@de , \"Marte\"@es .
            :q2 l:label \"Marsh land\" ; :title \"Mars rover\" . :marsBar l:label \"Sweet\" .
            :g { :q3 l:label \"Mars again\" . }",
        )
    })
}

fn get(server: &Server, target: &str) -> Answer {
    request(server.address(), "GET", target, &[], b"")
}

fn iris(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    let results = json["results"].as_array().unwrap().iter();
    results
        .map(|r| r["iri"].as_str().unwrap().replace("http://e/", ""))
        .collect()
}

#[test]
fn resources_are_found_by_words() {
    let server = serve(planets(), options());
    let answer = get(&server, "/search?q=mars&lang=es,de");
    assert_eq!(iris(&answer), ["q1", "q3", "q2", "marsBar"]);
    let json = answer.json();
    assert_eq!(json["complete"], true);
    assert!(json["ms"].as_f64().unwrap() >= 0.0);
    let first = serde_json::json!({
        "iri": "http://e/q1", "label": "Marte", "lang": "es", "matched": "Mars", "class": "http://e/Planet",
    });
    assert_eq!(json["results"][0], first);
    let last =
        serde_json::json!({ "iri": "http://e/marsBar", "label": "Sweet", "matched": "marsBar" });
    assert_eq!(json["results"][3], last);
    assert_eq!(iris(&get(&server, "/search?q=mars&limit=1")), ["q1"]);
    assert_eq!(iris(&get(&server, "/search?q=MARSH+l")), ["q2"]);
    assert_eq!(iris(&get(&server, "/search?q=")), [""; 0]);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let answer = request(server.address(), "POST", "/search", &form, b"q=sweet");
    assert_eq!(iris(&answer), ["marsBar"]);
    let described = request(
        server.address(),
        "GET",
        "/query",
        &[("accept", "application/n-triples")],
        b"",
    );
    for feature in ["search", "labels"] {
        let feature = format!("<urn:jindou:feature:{feature}>");
        assert!(described.text().contains(&feature), "{}", described.text());
    }
    until("nothing is left", || server.live_queries() == 0);
}

/// Everything is searched, whatever default graph the server gives to queries, unless the request chooses.
#[test]
fn all_graphs_are_searched_unless_some_are_chosen() {
    let all = ["q1", "q3", "q2", "marsBar"];
    for own in [None, Some(false), Some(true)] {
        let server = serve(planets(), options().with_union_default(own));
        for (chosen, want) in [
            ("", &all[..]),
            ("&graphs=all", &all),
            ("&graphs=default", &["q1", "q2", "marsBar"]),
            ("&default-graph-uri=http://e/g", &["q3"]),
            ("&default-graph-uri=http://e/none", &[]),
        ] {
            let found = get(&server, &format!("/search?q=mars{chosen}"));
            assert_eq!(iris(&found), want, "{chosen}, {own:?}");
            let labels = get(&server, &format!("/labels?iri=http://e/q3{chosen}")).json();
            let has = labels["labels"].get("http://e/q3").is_some();
            assert_eq!(has, want.contains(&"q3"), "{chosen}, {own:?}");
        }
    }
}

/// Without an index of words, an answer that ran out of time says what would help.
#[test]
fn an_answer_without_an_index_says_what_would_help() {
    let server = serve(planets(), options());
    let answer = get(&server, "/search?q=mars").json();
    assert_eq!(answer["indexed"], false);
    assert_eq!(answer.get("hint"), None);
    let answer = get(&server, "/search?q=mars&timeout=0s").json();
    assert_eq!(answer["complete"], false);
    let hint = answer["hint"].as_str().unwrap();
    assert!(hint.contains("recluster --text"), "{hint}");
}

#[test]
fn labels_come_in_the_best_language() {
    let server = serve(planets(), options());
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let all =
        ["q1", "q2", "q3", "nothing"].map(|n| format!("iri={}", escape(&format!("http://e/{n}"))));
    let body = all.join("&");
    let post = |more: &str| {
        let body = format!("{body}{more}");
        let answer = request(server.address(), "POST", "/labels", &form, body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let want = serde_json::json!({"labels": {
        "http://e/q1": { "text": "Mars", "lang": "de" }, "http://e/q2": { "text": "Marsh land" },
        "http://e/q3": { "text": "Mars again" },
    }});
    assert_eq!(post("&lang=de,en"), want);
    assert_eq!(post("")["labels"]["http://e/q1"]["lang"], "en");
    assert_eq!(post("&graphs=default")["labels"].get("http://e/q3"), None);
    let answer = get(&server, &format!("/labels?{}&lang=es", all[0]));
    assert_eq!(answer.json()["labels"]["http://e/q1"]["text"], "Marte");
}

#[test]
fn label_properties_can_be_chosen() {
    let chosen: ServerOptions = options().with_label_properties(vec!["http://e/title".to_owned()]);
    let server = serve(planets(), chosen);
    assert_eq!(iris(&get(&server, "/search?q=rover")), ["q2"]);
    let answer = get(&server, "/labels?iri=http%3A%2F%2Fe%2Fq2");
    assert_eq!(answer.json()["labels"]["http://e/q2"]["text"], "Mars rover");
}

#[test]
fn requests_that_ask_for_nothing_or_too_much_are_refused() {
    let server = serve(planets(), options());
    let many = format!("/labels?{}", "iri=urn:a&".repeat(1001));
    for (target, what) in [
        ("/search", "'q' is missing"),
        ("/search?q=a&limit=x", "limit=x"),
        ("/search?q=a&graphs=some", "graphs=some"),
        ("/search?q=a&timeout=x", "timeout=x"),
        ("/labels", "'iri' is missing"),
        (many.as_str(), "at most 1000"),
    ] {
        let answer = get(&server, target);
        assert_eq!(
            (answer.status, &*answer.problem()),
            (400, "bad-request"),
            "{target}"
        );
        assert!(answer.text().contains(what), "{}", answer.text());
    }
    let answer = request(
        server.address(),
        "POST",
        "/search",
        &[("content-type", "text/plain")],
        b"q=a",
    );
    assert_eq!(answer.status, 415);
}
