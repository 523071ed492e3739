//! Streams an answer with a deadline and a memory limit, from a graph made in memory.
//!
//! ```text
//! cargo run --release --example stream_with_limits
//! ```

use jindou::parse::{Format, Sources};
use jindou::{
    Database, Error, LoadOptions, MemoryBudget, Progress, QueryOptions, ResultFormat, ResultWriter,
};
use std::time::Duration;

fn main() -> jindou::Result<()> {
    let dir = std::env::temp_dir().join(format!("jindou-example-{}", std::process::id()));
    let mut text = String::from("@prefix e: <http://example.org/> .\n");
    for i in 0..1000 {
        text += &format!(
            "e:n{i} e:next e:n{} ; e:square {} .\n",
            (i + 1) % 1000,
            i * i
        );
    }
    let sources = Sources::builder()
        .text("numbers", text.into_bytes(), Format::Turtle)
        .build()?;
    Database::load(
        &dir,
        &sources,
        &LoadOptions::default(),
        &Progress::default(),
    )?;
    let db = Database::open(&dir)?;

    let options = QueryOptions::default()
        .with_timeout(Duration::from_secs(5))
        .with_memory(MemoryBudget::new(64 << 20));
    let mut writer = ResultWriter::new(std::io::stdout(), ResultFormat::Csv);
    let query = "PREFIX e: <http://example.org/>
        SELECT ?a ?b ?square WHERE { ?a e:next ?b . ?b e:square ?square FILTER(?square < 50) }";
    let outcome = db.run(query, &options, &mut writer);
    let _ = std::fs::remove_dir_all(&dir);
    match outcome {
        Ok(report) => eprintln!("{} rows", report.rows),
        Err(Error::Timeout(limit)) => eprintln!("gave up after {limit:?}"),
        Err(e) => return Err(e),
    }
    Ok(())
}
