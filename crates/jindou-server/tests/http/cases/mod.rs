//! Tests as text: `tests/cases/*.http` contain requests and the expected responses. docs/testing.md describes the
//! format. `JINDOU_CASES=FILE` or `FILE:LINE` selects cases: all in a file, or the one at a line.

mod check;
mod read;

use crate::{Store, options, serve, store, until};
use check::check;
use jindou_server::{Server, ServerOptions};
use jindou_testing::attack::Recipe;
use jindou_testing::cases::{case_files, failures};
use jindou_testing::http::request;
use read::{Case, Exchange, Names, filled};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
/// Longest text that the notation for repeated text may produce, in bytes.
const LONGEST: usize = 64 << 20;

/// A server, with its store and the files that its options name.
struct Served {
    server: Server,
    _data: Store,
    _files: Vec<tempfile::TempPath>,
}

/// Read-only servers that several cases share, by their options and data.
#[derive(Default)]
struct Shared(Mutex<BTreeMap<String, Arc<OnceLock<Arc<Served>>>>>);

fn written_out(text: &str) -> Result<String, String> {
    match text.contains('⟪') {
        true => Ok(text.parse::<Recipe>()?.text(LONGEST)),
        false => Ok(text.to_owned()),
    }
}

/// The server options for the `serve` lines of a case.
fn server_options(
    serve: &[(String, String)],
    files: &mut Vec<tempfile::TempPath>,
    folder: &Path,
) -> Result<ServerOptions, String> {
    let mut o = options();
    for (name, value) in serve {
        let number = || value.parse::<u64>().map_err(|e| format!("{value}: {e}"));
        let words = || value.split(' ').map(str::to_owned);
        o = match name.as_str() {
            "writable" => o.with_writable(true),
            "in-memory" => o,
            "union-default" => o.with_union_default(value != "false"),
            "common-prefixes" => o.with_common_prefixes(value != "false"),
            "store-prefixes" => o.with_store_prefixes(value != "false"),
            "store-name" => {
                let name: String = serde_json::from_str(value).map_err(|e| e.to_string())?;
                o.with_store_name(name)
            }
            "label-properties" => o.with_label_properties(words().collect()),
            "cors-origins" => o.with_cors_origins(words()),
            "query-memory" => o.with_query_memory(number()?),
            "query-temp" => o.with_query_temp(number()?),
            "max-request-bytes" => o.with_max_request_bytes(number()? as usize),
            "max-update-bytes" => o.with_max_update_bytes(number()? as usize),
            "max-result-rows" => o.with_max_result_rows(number()?),
            "max-result-bytes" => o.with_max_result_bytes(number()?),
            "max-timeout" => o.with_max_timeout(Duration::from_millis(number()?)),
            "backup-to" => {
                let target = folder.join(value);
                let target = jindou::BackupTarget::folder(&target.display().to_string());
                o.with_backup_to(target.map_err(|e| e.to_string())?)
            }
            "tokens" => {
                let file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
                let lines = value.replace(", ", "\n") + "\n";
                std::fs::write(file.path(), lines).map_err(|e| e.to_string())?;
                let path = file.into_temp_path();
                let o = o.with_token_file(&path);
                files.push(path);
                o
            }
            _ => return Err(format!("no option of a server: {name}")),
        };
    }
    Ok(o)
}

fn started(serve_lines: &[(String, String)], data: &str) -> Result<Served, String> {
    let mut data = store(&written_out(data)?);
    if serve_lines.iter().any(|(n, _)| n == "in-memory") {
        data.db = jindou::Database::in_memory();
    }
    let mut files = Vec::new();
    let options = server_options(serve_lines, &mut files, data.folder())?;
    Ok(Served {
        server: serve(&data, options),
        _data: data,
        _files: files,
    })
}

impl Shared {
    /// The server for a case, and whether it is shared: a writable one is its own, a read-only one is shared by all
    /// cases with the same options and data.
    fn server(&self, case: &Case, names: &Names) -> Result<(Arc<Served>, bool), String> {
        let filled = |(name, value): &(String, String)| (filled(name, names), filled(value, names));
        let serve: Vec<_> = case.serve.iter().map(filled).collect();
        let data = read::filled(case.data.as_deref().unwrap_or(""), names);
        let own = serve.iter().any(|(n, _)| n == "writable" || n == "tokens");
        if own {
            return Ok((Arc::new(started(&serve, &data)?), true));
        }
        let key = format!("{serve:?} {data}");
        let cell = Arc::clone(self.0.lock().unwrap().entry(key).or_default());
        if let Some(served) = cell.get() {
            return Ok((Arc::clone(served), false));
        }
        let served = Arc::new(started(&serve, &data)?);
        Ok((Arc::clone(cell.get_or_init(|| served)), false))
    }
}

/// Percent-encodes the characters that RFC 3986 does not allow in a request target; `%` stays as it is.
fn target(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() || b"-._~:/?[]@!$&'()*+,;=%".contains(&b) {
            out.push(char::from(b));
        } else {
            out += &format!("%{b:02X}");
        }
        out
    })
}

/// Compresses a body with these codings, one after the other.
fn packed(mut body: Vec<u8>, codings: &str) -> Result<Vec<u8>, String> {
    let level = flate2::Compression::default;
    for coding in codings.split(", ").filter(|c| !c.is_empty()) {
        let done = match coding {
            "gzip" => {
                let mut e = flate2::write::GzEncoder::new(vec![], level());
                e.write_all(&body).and_then(|()| e.finish())
            }
            "deflate" => {
                let mut e = flate2::write::ZlibEncoder::new(vec![], level());
                e.write_all(&body).and_then(|()| e.finish())
            }
            "zstd" => zstd::encode_all(&body[..], 3),
            _ => return Err(format!("cannot write {coding}")),
        };
        body = done.map_err(|e| e.to_string())?;
    }
    Ok(body)
}

/// Sends the request of an exchange, and compares the response.
fn exchange(to: &Served, e: &Exchange, names: &mut Names) -> Result<(), String> {
    let say = |text: &str| written_out(&filled(text, names));
    let path = target(&say(&e.target)?);
    let (mut headers, mut codings) = (Vec::new(), String::new());
    for (name, value) in &e.headers {
        match name.as_str() {
            "packed" => codings = say(value)?,
            _ => headers.push((filled(name, names), say(value)?)),
        }
    }
    let is = |media: &str| {
        let mut named = headers.iter().filter(|(name, _)| name == "content-type");
        named.any(|(_, value)| value.starts_with(media))
    };
    // The lines of a multipart body end in CRLF, as the standard requires.
    let ends = if is("multipart/") { "\r\n" } else { "\n" };
    let mut body = say(&e.body.join(ends))?;
    if is("application/x-www-form-urlencoded") {
        body = target(&body);
    }
    let body = packed(body.into_bytes(), &codings)?;
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (&**n, &**v)).collect();
    let method = filled(&e.method, names);
    let begun = Instant::now();
    loop {
        let answer = request(to.server.address(), &method, &path, &headers, &body);
        match check(&answer, e, names) {
            Err(_) if e.eventually && begun.elapsed().as_secs() < 60 => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(difference) => {
                let text = String::from_utf8_lossy(&answer.body);
                let text: String = text.chars().take(2000).collect();
                let head = format!("{} {:?}", answer.status, answer.headers);
                return Err(format!("{difference}\n{method} {path}\n{head}\n{text}"));
            }
            Ok(()) => return Ok(()),
        }
    }
}

/// Runs a case for each row of its tables. An error has the line number and names the row.
fn run(case: &Case, shared: &Shared) -> Result<(), (usize, String)> {
    for row in case.combinations() {
        let mut names = row.clone();
        let at_case = |e| (case.line, e);
        let (served, own) = shared.server(case, &names).map_err(at_case)?;
        names.insert("address".into(), served.server.address().to_string());
        for e in &case.exchanges {
            exchange(&served, e, &mut names).map_err(|difference| {
                let row = if row.is_empty() {
                    String::new()
                } else {
                    format!(" {row:?}")
                };
                (e.line, format!("{}{row}: {difference}", case.name))
            })?;
        }
        if own {
            until("nothing is left", || served.server.live_queries() == 0);
        }
    }
    Ok(())
}

/// The selected cases, each with the name of its file.
fn cases() -> Vec<(String, Case)> {
    let mut all = Vec::new();
    for file in case_files(FOLDER) {
        let text = std::fs::read_to_string(&file.path).expect("a file of cases");
        let mut cases = Case::all(&text).unwrap_or_else(|e| panic!("{}: {e}", file.name()));
        file.select(&mut cases, |c| c.line);
        all.extend(cases.into_iter().map(|c| (file.name(), c)));
    }
    all
}

#[test]
fn responses_are_as_the_cases_say() {
    let all = cases();
    println!("{} cases", all.len());
    let shared = Shared::default();
    let failures = failures(&all, |(file, case)| {
        run(case, &shared).map_err(|(line, difference)| format!("{file}:{line}: {difference}"))
    });
    assert!(
        failures.is_empty(),
        "{} failures:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    for cell in shared.0.lock().unwrap().values() {
        let served = cell.get().expect("a server");
        until("nothing is left", || served.server.live_queries() == 0);
    }
}

/// The runner must report each kind of difference; otherwise a case would pass whatever the response is.
#[test]
fn differences_are_noticed() {
    let asked = "== one\ndata\n| <http://e/a> <http://e/p> 1 .\nGET /query?query=ASK{}\naccept: application/sparql-results+json\n";
    let right = "HTTP 200\n/boolean = true\nboolean = true\ncontent-type = application/sparql-results+json\nbody ~ true\nbody !~ false\nx absent\n/x absent\n/boolean -> it\nvary present\n| {\"head\":{},\"boolean\":{{it}}}\n";
    let shared = Shared::default();
    let outcome = |text: &str| run(&Case::all(text).expect("a case")[0], &shared);
    outcome(&format!("{asked}{right}")).expect("the right expectation");
    for wrong in [
        "HTTP 400",
        "HTTP 200 syntax",
        "HTTP 4xx",
        "HTTP 200\n/boolean = false",
        "HTTP 200\n/boolean = \"true\"",
        "HTTP 200\n/boolean != true",
        "HTTP 200\nboolean = false",
        "HTTP 200\n/head # 1",
        "HTTP 200\ncontent-type = text/csv",
        "HTTP 200\ncontent-type ^ text/",
        "HTTP 200\ncontent-type absent",
        "HTTP 200\ncontent-type = ",
        "HTTP 200\nx = y",
        "HTTP 200\n/x present",
        "HTTP 200\n/boolean > 1",
        "HTTP 200\nbody ~ false",
        "HTTP 200\nbody !~ true",
        "HTTP 200\nbody = \"\"",
        "HTTP 200\nbody # 2",
        "HTTP 200\nrows = 1",
        "HTTP 200\nquads = 0",
        "HTTP 200\nwhole = false",
        "HTTP 200\n| true",
    ] {
        assert!(outcome(&format!("{asked}{wrong}\n")).is_err(), "{wrong}");
    }
    for broken in [
        "== nothing\n",
        "== no response\nGET /\n",
        "== no such line\nserved writable\nGET /\nHTTP 200\n",
        "== a short row\neach a | b\n- 1\nGET /\nHTTP 200\n",
    ] {
        assert!(Case::all(broken).is_err(), "{broken}");
    }
}
