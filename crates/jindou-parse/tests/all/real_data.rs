//! Real data sets of the shared folder: valid data must load, and broken data must be reported. Ignored by default,
//! since it takes long: `cargo test --release -p jindou-parse --test all real_data:: -- --ignored --nocapture`.

use jindou_model::{Error, Progress, QuadBatch, QuadSink, QuadSource};
use jindou_parse::Sources;
use jindou_testing::{files_below, shared, unpack};

struct Count(u64);

impl QuadSink for Count {
    fn batch(&mut self, batch: &QuadBatch) -> jindou_model::Result<()> {
        self.0 += batch.quads.len() as u64;
        Ok(())
    }
}

#[test]
#[ignore = "unpacks and parses some hundred megabytes"]
fn real_data_loads_and_broken_files_are_named() {
    for (archive, broken_files) in [
        ("mir-rdf", Some(11)),
        ("ted", None),
        ("zazuko-vocabularies", None),
    ] {
        let Some(path) = shared(&format!("data/{archive}.tar.gz")) else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        unpack(&path, dir.path());
        let (mut quads, mut loaded, mut broken) = (0, 0, 0);
        for file in files_below(dir.path()) {
            let Ok(sources) = Sources::builder().path(&file).build() else {
                println!("{archive}: not RDF: {}", file.display());
                continue;
            };
            let mut count = Count(0);
            match sources.run(0, 1, &mut count, &Progress::default()) {
                Ok(()) => {
                    loaded += 1;
                    quads += count.0;
                }
                Err(Error::Syntax { at, message, text }) => {
                    broken += 1;
                    println!("{at}: {message}");
                    assert!(at.line > 0 && at.column > 0 && text.is_some());
                    assert!(message.contains("expected"));
                }
                Err(e) => panic!("{e}"),
            }
        }
        println!("{archive}: {loaded} files with {quads} quads loaded, {broken} broken");
        assert!(quads > 10_000);
        if let Some(expected) = broken_files {
            assert_eq!(broken, expected);
        }
        let lenient = Sources::builder().path(dir.path()).lenient(true);
        let (lenient, mut count) = (lenient.build().unwrap(), Count(0));
        lenient.run(0, 1, &mut count, &Progress::default()).unwrap();
        let (all, skipped) = (count.0, lenient.skipped());
        println!("{archive}: {all} quads when lenient, {skipped} statements skipped");
        assert!(count.0 >= quads);
    }
}
