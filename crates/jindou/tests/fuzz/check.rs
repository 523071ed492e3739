//! Properties that hold for every query text, from parsing to the written result. Also the body of the fuzz target
//! `queries`.

use jindou::testing::source;
use jindou::{Database, Error, MemoryBudget, QueryOptions, ResultFormat, ResultWriter};
use jindou_parse::Format;
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use std::io;
use std::time::Duration;
use tempfile::TempDir;

/// A query's time limit.
pub const TIME: Duration = Duration::from_millis(200);
/// A query's memory limit.
pub const MEMORY: u64 = 32 << 20;
/// Answers are kept up to this many bytes. After that, the reader either discards the text or acts as if it went away.
const KEPT: usize = 256 << 10;

/// Every kind of term that a store can hold, in several graphs.
const DATA: &str = r#"
@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:v0 a :c0 ; :p0 :v1, :v2, "a", "", "b"@en, "b"@de-CH, 1, 2, 1.5, 1e3 ; :p1 true ; :p2 :v0 .
:v1 a :c1 ; :p0 :v2 ; :p1 "2020-01-01T00:00:00Z"^^xsd:dateTime, "2021-05-06"^^xsd:date, "12:00:00"^^xsd:time ; :p2 :v3 .
:v2 a :c0, :c1 ; :p0 _:b0 ; :p1 "P1Y2M"^^xsd:yearMonthDuration, "P1DT2H"^^xsd:dayTimeDuration, "INF"^^xsd:double, "NaN"^^xsd:float .
:v3 :p0 "x\"y\\z\n\t\r", "日本語", "<&>'"; :p1 "no number"^^xsd:integer, "--"^^xsd:dateTime, "t"^^:type ; :p2 :v0, :v1 .
_:b0 a :c2 ; :p0 _:b1 ; :p1 9223372036854775807, -9223372036854775808, "18446744073709551615"^^xsd:unsignedLong .
_:b1 :p0 _:b0 ; :p2 "(a+)+b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "0.000000000000000001"^^xsd:decimal .
:g0 { :v0 :p0 :v1 . :v1 :p0 :v2 . :v2 :p2 :v0 ; a :c0 . :p0 :p1 :g0 }
:g1 { :v0 :p0 :v1 ; :p1 1 . :v3 a :c2 . _:b0 :p0 "in g1" }
_:g2 { :v0 :p0 :v0 }
"#;

/// The store on which the queries are run.
pub struct Ground {
    pub db: Database,
    _folder: TempDir,
}

/// Loads the store.
pub fn ground() -> Ground {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("store");
    let source = source(DATA, Format::TriG);
    let options = jindou::LoadOptions::default()
        .with_threads(1)
        .with_memory(1 << 30);
    Database::load(&dir, &source, &options, &jindou::Progress::default()).expect("a load");
    Ground {
        db: Database::open(&dir).expect("a store"),
        _folder: folder,
    }
}

/// A reader that keeps the first bytes of the answer. After that it discards all further ones if it is patient, and
/// otherwise acts as if it went away.
#[derive(Default)]
struct Reader {
    kept: Vec<u8>,
    patient: bool,
    overrun: bool,
}

impl io::Write for &mut Reader {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.overrun |= self.kept.len() + text.len() > KEPT;
        match (self.overrun, self.patient) {
            (false, _) => self.kept.extend_from_slice(text),
            (true, true) => {}
            (true, false) => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        Ok(text.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The text is not valid SPARQL, or exceeds the parser's limits.
    Refused,
    /// The query was answered.
    Answered,
    /// A limit ended the query, or its reader went away.
    Limited,
    /// The query needs something that is not supported here.
    Unsupported,
}

/// Runs a query, and checks how it ended and what was written. A patient reader accepts answers of any length.
///
/// # Errors
/// A message that says which property does not hold.
pub fn check(
    ground: &Ground,
    text: &str,
    format: ResultFormat,
    threads: usize,
    patient: bool,
) -> Result<End, String> {
    let mut reader = Reader {
        patient,
        ..Reader::default()
    };
    let options = QueryOptions::default()
        .with_common_prefixes(false)
        .with_store_prefixes(false)
        .with_threads(threads)
        .with_timeout(TIME)
        .with_memory(MemoryBudget::new(MEMORY));
    let mut sink = ResultWriter::new(&mut reader, format);
    let ended = ground.db.run(text, &options, &mut sink);
    drop(sink);
    let used = options.memory.as_ref().map_or(0, MemoryBudget::used);
    if used != 0 {
        return Err(format!("{used} bytes stay charged to its budget"));
    }
    match ended {
        Ok(_) if reader.overrun => Ok(End::Limited),
        Ok(report) => readable(&reader.kept, text, format, report.rows).map(|()| End::Answered),
        Err(Error::Query(_) | Error::Sparql(_)) if reader.kept.is_empty() => Ok(End::Refused),
        Err(Error::Limit(_) | Error::Timeout(_) | Error::SinkClosed) => Ok(End::Limited),
        // There is no client for SERVICE here, so such queries are refused.
        Err(Error::Unsupported(_) | Error::Service { .. }) => Ok(End::Unsupported),
        Err(e) => Err(format!("it ended with: {e}")),
    }
}

/// Checks that independent parsers can read the written answer, and find the number of rows that was reported.
fn readable(answer: &[u8], text: &str, format: ResultFormat, rows: u64) -> Result<(), String> {
    let query = jindou::parse_query(text).map_err(|e| format!("answered, but: {e}"))?;
    let is_graph = matches!(
        query,
        jindou::algebra::Query::Construct { .. } | jindou::algebra::Query::Describe { .. }
    );
    if is_graph {
        let format = match format {
            ResultFormat::Rdf(format) => format,
            ResultFormat::Table => RdfFormat::NTriples,
            ResultFormat::Json => RdfFormat::JsonLd {
                profile: Default::default(),
            },
            // RDF/XML is not checked (see below); triples as rows have tests of their own.
            ResultFormat::Xml | ResultFormat::Csv | ResultFormat::Tsv => return Ok(()),
            other => return Err(format!("nobody here reads {other:?}")),
        };
        // RDF/XML cannot express some predicates and characters, and so may end in an error.
        if format == RdfFormat::RdfXml {
            return Ok(());
        }
        for triple in RdfParser::from_format(format).for_reader(answer) {
            triple.map_err(|e| format!("a graph that cannot be read: {e}: {}", shown(answer)))?;
        }
        return Ok(());
    }
    let format = match format {
        ResultFormat::Json => QueryResultsFormat::Json,
        ResultFormat::Xml => QueryResultsFormat::Xml,
        ResultFormat::Tsv if !matches!(query, jindou::algebra::Query::Ask { .. }) => {
            QueryResultsFormat::Tsv
        }
        _ => return Ok(()),
    };
    let bad = |e: &dyn std::fmt::Display| {
        format!("an answer that cannot be read: {e}: {}", shown(answer))
    };
    let parsed = QueryResultsParser::from_format(format)
        .for_reader(answer)
        .map_err(|e| bad(&e))?;
    let mut seen = 1;
    if let ReaderQueryResultsParserOutput::Solutions(solutions) = parsed {
        seen = 0;
        for row in solutions {
            row.map_err(|e| bad(&e))?;
            seen += 1;
        }
    }
    if seen == rows {
        Ok(())
    } else {
        Err(format!("{rows} rows were reported and {seen} written"))
    }
}

fn shown(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[..answer.len().min(2000)]).into_owned()
}
