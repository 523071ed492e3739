//! Loads RDF files into a store directory and asks a query.
//!
//! ```text
//! cargo run --release --example load_and_ask -- demo.store demo/data
//! ```

use jindou::parse::Sources;
use jindou::{Database, LoadOptions, Progress};

fn main() -> jindou::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(store), Some(files)) = (args.next(), args.next()) else {
        eprintln!("usage: load_and_ask STORE-DIRECTORY FILE-OR-FOLDER");
        std::process::exit(2);
    };
    let sources = Sources::builder().path(&files).build()?;
    let options = LoadOptions::default()
        .with_replace(true)
        .with_union_default(true);
    let report = Database::load(&store, &sources, &options, &Progress::default())?;
    println!("{} quads, {} terms", report.quads_stored, report.terms);

    let db = Database::open(&store)?;
    let answer = db.query(
        "SELECT ?class (COUNT(?s) AS ?instances) WHERE { ?s a ?class }
         GROUP BY ?class ORDER BY DESC(?instances) LIMIT 10",
    )?;
    for row in answer.solutions() {
        if let [Some(class), Some(instances)] = &row[..] {
            println!("{class}\t{instances}");
        }
    }
    Ok(())
}
