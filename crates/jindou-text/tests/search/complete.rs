//! Completion by words of labels.

use crate::support::{World, opened};
use jindou::complete::{Completer, Item, Request};
use jindou::{Database, QueryOptions, Sharding, UpdateOptions};
use std::sync::Arc;
use std::time::Duration;

const DATA: &str = r#"
    PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
    PREFIX : <http://e/>
    INSERT DATA {
        :q1 :P31 :Q5 ; :P106 :Q36180 ; a :C1 . :q2 :P31 :Q5 . :q3 :P31 :Q11424 ; a :C2 .
        :P31 rdfs:label "ist ein(e)"@de, "instance of"@en . :P106 rdfs:label "occupation"@en .
        :P279 rdfs:label "instance set" .
        :Q5 rdfs:label "human"@en . :Q11424 rdfs:label "film"@en . :Q36180 rdfs:label "writer"@en, "Schriftsteller"@de .
        :Q7 rdfs:label "human writer" .
        :C1 rdfs:label "scientist" . :C2 rdfs:label "scientific article" .
        GRAPH :g1 { :q1 :note "from elsewhere" . :g1 rdfs:label "catalogue" }
    }"#;

/// Items that completion offers because of their labels, as `name (label)`.
fn offered(completer: &Completer, text: &str, more: impl FnOnce(&mut Request<'_>)) -> Vec<String> {
    let text = format!("PREFIX : <http://e/> SELECT * {{ {text}");
    let mut request = Request {
        patience: Duration::from_secs(20),
        ..Request::new(&text, "")
    };
    more(&mut request);
    let found = completer.complete(&request).unwrap();
    let labelled = |item: &Item| Some(format!("{} ({})", item.text, item.label.as_ref()?));
    found.items.iter().filter_map(labelled).collect()
}

fn compare(db: &Database) {
    let completer = Completer::new(db.clone());
    let of = |text: &str| offered(&completer, text, |_| {});
    // Finds a predicate of the data by a label in any language, whether or not the subject is known.
    for subject in ["?x", "?x :P106 ?y ; ", ":q1"] {
        let found = of(&format!("{subject} instance"));
        assert_eq!(found, [":P31 (instance of)"], "{subject}");
        assert_eq!(
            of(&format!("{subject} ein")),
            [":P31 (ist ein(e))"],
            "{subject}"
        );
    }
    // If no predicate of the subject matches, other predicates are offered.
    assert_eq!(of(":q2 occup"), [":P106 (occupation)"]);
    assert_eq!(of("?x instance_of"), [":P31 (instance of)"]);
    // Finds objects of the predicate, also those that the sample did not contain. Q7 is not an object of it.
    assert_eq!(of("?x :P31 human"), [":Q5 (human)"]);
    assert_eq!(of("?x :P106 schrift"), [":Q36180 (Schriftsteller)"]);
    assert_eq!(of("?x :P106 human"), [""; 0]);
    assert_eq!(of("?x ?p writ").len(), 2);
    // Finds classes, subjects and graphs.
    assert_eq!(
        of("?x a scient"),
        [":C1 (scientist)", ":C2 (scientific article)"]
    );
    assert_eq!(of("human"), [":Q5 (human)", ":Q7 (human writer)"]);
    assert_eq!(of("GRAPH catal"), [":g1 (catalogue)"]);
    // Texts that are not words of a label, and a keyword of SPARQL.
    for other in [
        "?x in",
        "?x <instance",
        "?x :instance",
        "?x :P31 \"human",
        "?x :P31 ?hum",
        "?x :P31 'hum",
        "fil",
        "FILTER(human",
        "?x rdfs:lab",
    ] {
        assert_eq!(of(other), [""; 0], "{other}");
    }
    // The counts are the same as for items that are not found by labels.
    let text = "PREFIX : <http://e/> SELECT * { ?x instance";
    let request = Request {
        patience: Duration::from_secs(20),
        ..Request::new(text, "")
    };
    let found = completer.complete(&request).unwrap();
    let first = &found.items[0];
    assert_eq!((&*first.text, first.count), (":P31", Some(3)));
    // Labels may be other properties, or none.
    let none = |r: &mut Request<'_>| r.labels = Arc::default();
    assert_eq!(offered(&completer, "?x instance", none), [""; 0]);
    let notes = |r: &mut Request<'_>| r.labels = vec!["http://e/note".to_owned()].into();
    assert_eq!(
        offered(&completer, "elsewhere", notes),
        [":q1 (from elsewhere)"; 0]
    );
    let notes = |r: &mut Request<'_>| {
        r.labels = vec!["http://e/note".to_owned()].into();
        r.options = QueryOptions::default().with_union_default(true);
    };
    assert_eq!(
        offered(&completer, "elsewhere", notes),
        [":q1 (from elsewhere)"]
    );
    // If there is no time, completion does not fail.
    let hasty = |r: &mut Request<'_>| r.patience = Duration::ZERO;
    assert!(offered(&completer, "?x instance", hasty).len() <= 1);
}

#[test]
fn words_of_labels_find_what_may_stand_at_the_cursor() {
    let db = Database::in_memory();
    db.update(DATA, &UpdateOptions::default()).unwrap();
    compare(&db);
    // The results are the same for a store on disk, with the index and without it.
    let trig = {
        let body = DATA.split_once("INSERT DATA {").unwrap();
        let data = body.1.trim_end().trim_end_matches('}');
        format!("{}{data}", body.0.replace("PREFIX", "PREFIX "))
    };
    for indexed in [false, true] {
        let world = World::new(&trig, indexed);
        compare(&opened(&world.store()));
        let sharding = Sharding::new(3).with_block_shift(Some(0));
        let world = World::cut(&trig, indexed, sharding);
        compare(&opened(&world.store()));
    }
}
