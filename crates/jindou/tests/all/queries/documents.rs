//! LOAD: documents are fetched before the update waits for its turn to write; and what happens if one cannot be
//! fetched.

use jindou::parse::Format;
use jindou::testing::Store;
use jindou::{
    CancelToken, Document, DocumentSource, Error, MemoryBudget, QueryOptions, UpdateOptions,
};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A source that returns a document only when the test says so, and fails for IRIs that end in `none`.
#[derive(Debug)]
struct Slow {
    asked: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl DocumentSource for Slow {
    fn fetch(&self, iri: &str, _: &CancelToken, _: &MemoryBudget) -> Result<Document, Error> {
        if iri.ends_with("none") {
            return Err(Error::document(iri, "there is none"));
        }
        self.asked.send(()).unwrap();
        let wait = self.go_on.lock().unwrap();
        wait.recv_timeout(Duration::from_secs(60)).unwrap();
        let text = "<http://e/loaded> <http://e/p> _:b , 1 .";
        Ok(Document::Text(text.as_bytes().into(), Format::Turtle, None))
    }
}

fn slow() -> (UpdateOptions, Receiver<()>, Sender<()>) {
    let (asked, was_asked) = channel();
    let (go, go_on) = channel();
    let documents = jindou::Documents::new().others(Arc::new(Slow {
        asked,
        go_on: Mutex::new(go_on),
    }));
    let options = UpdateOptions::default().with_documents(Arc::new(documents));
    (options, was_asked, go)
}

fn count(store: &Store, pattern: &str) -> usize {
    let text = format!("SELECT * {{ {pattern} }}");
    let mut out = Vec::new();
    let format = jindou::ResultFormat::Tsv;
    let mut sink = jindou::ResultWriter::new(&mut out, format);
    store
        .db
        .run(&text, &QueryOptions::default(), &mut sink)
        .unwrap();
    drop(sink);
    String::from_utf8(out).unwrap().lines().count() - 1
}

#[test]
fn a_slow_document_keeps_no_writer_waiting() {
    let store = Store::of_trig("<http://e/a> <http://e/p> 1 .");
    let (options, was_asked, go) = slow();
    std::thread::scope(|scope| {
        let text = "INSERT DATA { <http://e/b> <http://e/p> 2 } ; LOAD <http://e/slow> ; \
                    DELETE { ?s <http://e/p> 1 } WHERE { ?s <http://e/p> 1 }";
        let loading = scope.spawn(|| store.db.update(text, &options));
        was_asked.recv_timeout(Duration::from_secs(60)).unwrap();
        // While the document is being fetched, other updates are executed.
        let other = "INSERT DATA { <http://e/c> <http://e/p> 1 , 3 }";
        store.db.update(other, &UpdateOptions::default()).unwrap();
        assert_eq!(count(&store, "?s <http://e/p> ?o"), 3);
        go.send(()).unwrap();
        let done = loading.join().unwrap().unwrap();
        assert_eq!((done.operations, done.added, done.removed), (3, 3, 3));
    });
    // The request's operations see each other's changes in order, and the update that was executed meanwhile.
    assert_eq!(count(&store, "?s <http://e/p> 1"), 0);
    assert_eq!(count(&store, "?s <http://e/p> ?o"), 3);
    assert_eq!(
        count(
            &store,
            "<http://e/loaded> <http://e/p> ?o FILTER(isBlank(?o))"
        ),
        1
    );
}

#[test]
fn a_document_that_cannot_be_had_fails_the_request_unless_it_is_silent() {
    let store = Store::of_trig(
        "<http://e/a> <http://e/p> 1 . <http://e/g> { <http://e/a> <http://e/p> 2 }",
    );
    let (options, was_asked, go) = slow();
    go.send(()).unwrap();
    let text = "INSERT DATA { <http://e/b> <http://e/p> 2 } ; LOAD <http://e/none> ; LOAD <http://e/never>";
    let e = store.db.update(text, &options).unwrap_err();
    assert!(
        matches!(&e, Error::Document { iri, .. } if iri == "http://e/none"),
        "{e}"
    );
    assert!(
        was_asked.try_recv().is_err(),
        "what is behind it is not read"
    );
    assert_eq!(count(&store, "?s <http://e/p> ?o"), 1);
    // If an earlier operation fails as well, its error is reported.
    let text = "CREATE GRAPH <http://e/g> ; LOAD <http://e/none>";
    let e = store.db.update(text, &options).unwrap_err();
    assert!(matches!(e, Error::Conflict(_)), "{e}");
    let text = "LOAD SILENT <http://e/none> ; LOAD <http://e/there> INTO GRAPH <http://e/new>";
    store.db.update(text, &options).unwrap();
    assert_eq!(count(&store, "GRAPH <http://e/new> { ?s ?p ?o }"), 2);
}
