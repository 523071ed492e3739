//! The library without its features, as `cargo test -p jindou` builds it; tests of the whole workspace have all of them on.

#[cfg(not(feature = "gpu"))]
#[test]
fn a_gpu_that_the_library_was_built_without_is_refused_only_where_it_is_demanded() {
    use jindou::{Database, Error, GpuChoice, LoadOptions, Progress, QueryOptions};

    let folder = tempfile::tempdir().unwrap();
    let (file, store) = (folder.path().join("a.nt"), folder.path().join("store"));
    std::fs::write(&file, "<http://e/a> <http://e/p> <http://e/b> .\n").unwrap();
    let source = jindou::parse::Sources::builder()
        .path(&file)
        .build()
        .unwrap();
    Database::load(
        &store,
        &source,
        &LoadOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    let db = Database::open(&store).unwrap();
    for text in ["SELECT * { ?s ?p ?o }", "ASK { ?s ?p ?o }"] {
        let asked = |gpu| {
            let options = QueryOptions::default().with_gpu(gpu);
            db.query_with(text, &options)
        };
        assert!(asked(GpuChoice::Off).is_ok() && asked(GpuChoice::Auto).is_ok());
        let refused = asked(GpuChoice::On).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::Gpu(_)), "{refused:?}");
        assert!(
            refused.to_string().contains("without its feature `gpu`"),
            "{refused}"
        );
    }
}
