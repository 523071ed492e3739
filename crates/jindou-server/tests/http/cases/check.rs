//! Compares a response with the expectations of a test case.

use super::read::{Exchange, Expectation, Names, filled};
use jindou_testing::http::Answer;
use oxrdfio::{RdfFormat, RdfParser};
use serde_json::Value;
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput as Parsed};

/// Returns the first difference as an error. Values that the case names are added to `names`.
pub(super) fn check(answer: &Answer, e: &Exchange, names: &mut Names) -> Result<(), String> {
    let status = answer.status.to_string();
    let wanted = filled(&e.status, names);
    let fits = match wanted.strip_suffix("xx") {
        Some(class) => status.starts_with(class),
        None => status == wanted,
    };
    if !fits {
        return Err(format!("status {status}, expected {wanted}"));
    }
    if let Some(kind) = &e.problem {
        let kind = filled(kind, names);
        let media = answer.header("content-type");
        let json = json(answer)?;
        let is = json["type"].as_str().unwrap_or("");
        if media != "application/problem+json"
            || is.trim_start_matches("urn:jindou:problem:") != kind
            || json["status"] != answer.status
        {
            return Err(format!("no problem of the kind {kind}, but {is} ({media})"));
        }
    }
    let cut = |x: &Expectation| x.subject == "whole";
    if !answer.is_whole() && !e.expected.iter().any(cut) {
        return Err("the body is cut off".into());
    }
    for x in &e.expected {
        expect(answer, x, names).map_err(|e| format!("line {}: {e}", x.line))?;
    }
    if let Some(lines) = &e.whole {
        let is: Vec<&str> = text(answer)?.lines().collect();
        let lines = filled(&lines.join("\n"), names);
        if is != lines.lines().collect::<Vec<_>>() {
            return Err(format!("the body is\n{}", is.join("\n")));
        }
    }
    Ok(())
}

fn text(answer: &Answer) -> Result<&str, String> {
    std::str::from_utf8(&answer.body).map_err(|e| e.to_string())
}

/// The body as JSON; for lines of JSON, an array of their values.
fn json(answer: &Answer) -> Result<Value, String> {
    let text = text(answer)?;
    if answer.header("content-type") == "application/x-ndjson" {
        let lines = text.lines().map(serde_json::from_str);
        let lines: Result<_, _> = lines.collect();
        return lines.map(Value::Array).map_err(|e| e.to_string());
    }
    serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))
}

/// Parses a result document with another implementation.
fn parsed(answer: &Answer) -> Result<Parsed<'_>, String> {
    let media = answer.header("content-type");
    let format = QueryResultsFormat::from_media_type(media);
    let format = format.ok_or_else(|| format!("not a format of results: {media}"))?;
    let parsed = QueryResultsParser::from_format(format).for_slice(&answer.body);
    parsed.map_err(|e| e.to_string())
}

/// The part of the response that an expectation is about; `None` if the response does not have it.
fn subject(answer: &Answer, name: &str) -> Result<Option<Value>, String> {
    if name.starts_with('/') {
        let path = if name == "/" { "" } else { name };
        return Ok(json(answer)?.pointer(path).cloned());
    }
    Ok(Some(match name {
        "body" => text(answer)?.into(),
        "whole" => answer.is_whole().into(),
        "rows" | "cells" => match parsed(answer)? {
            Parsed::Solutions(rows) => {
                let widths = rows.map(|row| row.map(|r| r.len()));
                let widths: Result<Vec<_>, _> = widths.collect();
                let widths = widths.map_err(|e| e.to_string())?;
                match name {
                    "rows" => widths.len().into(),
                    _ => widths.into_iter().sum::<usize>().into(),
                }
            }
            Parsed::Boolean(_) => return Err("true or false, not rows".into()),
        },
        "boolean" => match parsed(answer)? {
            Parsed::Boolean(b) => b.into(),
            Parsed::Solutions(_) => return Err("rows, not true or false".into()),
        },
        "quads" => {
            let media = answer.header("content-type");
            let format = RdfFormat::from_media_type(media);
            let format = format.ok_or_else(|| format!("not RDF: {media}"))?;
            let quads = RdfParser::from_format(format).for_slice(&answer.body);
            let quads: Result<Vec<_>, _> = quads.collect();
            quads.map_err(|e| e.to_string())?.len().into()
        }
        header => {
            let values = answer.headers.iter().filter(|(n, _)| n == header);
            let values: Vec<&str> = values.map(|(_, v)| &**v).collect();
            match values.is_empty() {
                true => return Ok(None),
                false => values.join(", ").into(),
            }
        }
    }))
}

fn expect(answer: &Answer, x: &Expectation, names: &mut Names) -> Result<(), String> {
    let name = filled(&x.subject, names);
    let is = subject(answer, &name)?;
    let value = filled(&x.value, names);
    let is = match (&*x.operator, is) {
        ("absent", is) if value.is_empty() => {
            return match is {
                Some(is) => Err(format!("{name} is {is}")),
                None => Ok(()),
            };
        }
        // A missing header may be named, or compared with, the empty text.
        ("->", None) => "".into(),
        ("=", None) if value.is_empty() => return Ok(()),
        (_, None) => return Err(format!("there is no {name}")),
        (_, Some(is)) => is,
    };
    let said = match &is {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    // In a case, values of headers are written literally, all other values as JSON.
    let is_header = !name.starts_with('/')
        && !["body", "whole", "rows", "cells", "boolean", "quads"].contains(&&*name);
    let same = || -> Result<bool, String> {
        if is_header {
            return Ok(said == value);
        }
        let value: Value = serde_json::from_str(&value).map_err(|e| format!("{value}: {e}"))?;
        Ok(value == is)
    };
    let number = |text: &str| text.parse::<f64>().map_err(|e| format!("{text}: {e}"));
    let holds = match &*x.operator {
        "=" => same()?,
        "!=" => !same()?,
        "~" => said.contains(&value),
        "!~" => !said.contains(&value),
        "^" => said.starts_with(&value),
        ">" => number(&said)? > number(&value)?,
        "#" => {
            let count = match &is {
                Value::Array(all) => all.len(),
                Value::Object(all) => all.len(),
                _ => said.lines().count(),
            };
            count.to_string() == value
        }
        "present" => value.is_empty(),
        "->" => {
            names.insert(value, said);
            return Ok(());
        }
        other => return Err(format!("no operator: {other}")),
    };
    match holds {
        true => Ok(()),
        false => {
            let said: String = said.chars().take(500).collect();
            Err(format!("{name} {} {value}, but it is {said}", x.operator))
        }
    }
}
