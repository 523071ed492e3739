//! `/update` (SPARQL 1.1 Protocol, section 2.2). Also handles updates at `/sparql`.

use super::input::{Parameters, address, media_type, utf8};
use super::text;
use crate::base::unmarked;
use crate::conditions::Conditions;
use crate::consistency;
use crate::guard;
use crate::problem::Problem;
use crate::run::Connection;
use crate::shared::AppState;
use crate::write::LiveUpdate;
use axum::body::Body;
use http::request::Parts;
use http::{Method, Response};
use jindou::UpdateReport;
use jindou::parse::SkipReport;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Longest message about a skipped statement, in characters.
const LONGEST: usize = 500;

/// Executes an update, whichever route it was sent to.
pub(super) async fn answer(
    shared: &Arc<AppState>,
    connection: &Connection,
    parts: &Parts,
    content: Body,
) -> Result<Response<Body>, Problem> {
    if parts.method != Method::POST {
        return Err(Problem::method("POST, OPTIONS"));
    }
    guard::may_write(shared, connection, parts)?;
    let conditions = Conditions::from_headers(&parts.headers)?;
    let mut parameters = Parameters::of_url(&parts.uri)?;
    let form = match media_type(&parts.headers)?.as_deref() {
        Some("application/x-www-form-urlencoded") => true,
        Some("application/sparql-update") => false,
        Some("application/sparql-query") => {
            return Err(Problem::media_type(
                "this is a query: send it to /query or /sparql",
            ));
        }
        other => {
            return Err(Problem::media_type(format!(
                "send an update as application/x-www-form-urlencoded or application/sparql-update, not as {}",
                other.unwrap_or("a body without Content-Type")
            )));
        }
    };
    let update = LiveUpdate::admit(shared, connection, "an update", parameters.timeout()?)?
        .named(connection, parts)?;
    let body = update.body(content, &parts.headers).await?;
    let request = if form {
        parameters.add(&body)?;
        update.limit(parameters.timeout()?);
        parameters.one("update")?.ok_or_else(|| {
            Problem::bad_request(if parameters.has("query") {
                "this is a query: send it to /query or /sparql"
            } else {
                "the form has no parameter 'update'"
            })
        })?
    } else {
        if parameters.has("update") {
            return Err(Problem::bad_request(
                "there is an update in the URL and another in the body; send only one",
            ));
        }
        utf8(body)?
    };
    let request = unmarked(request);
    update.show(&request);
    let (using, union_default) = (parameters.using(), parameters.union_default()?);
    let lenient = parameters.switch("lenient")?;
    let base = address(shared, &parts.headers, parts.uri.path()).map(|a| a.into_string());
    let condition = Some(conditions.on(None)).filter(|_| !conditions.is_empty());
    let report = update
        .run(move |db, mut options| {
            options.condition = condition;
            (options.using, options.base) = (using, base);
            options.union_default = union_default.or(options.union_default);
            options.lenient = lenient;
            db.update(&request, &options)
        })
        .await?;
    Ok(reported(&report))
}

/// The report on an update, as JSON.
pub(super) fn reported(report: &UpdateReport) -> Response<Body> {
    let ms = crate::millis;
    let mut document = serde_json::json!({
        "snapshot": report.snapshot,
        "operations": report.operations,
        "added": report.added,
        "removed": report.removed,
        "ms": {
            "parse": ms(report.parse_time), "wait": ms(report.wait_time),
            "run": ms(report.run_time), "commit": ms(report.commit_time),
        },
    });
    if let Some(skipped) = &report.skipped {
        document["skipped"] = skips(skipped);
    }
    let mut response = text("application/json", document.to_string() + "\n");
    let number = consistency::value(report.snapshot);
    response.headers_mut().insert(consistency::SNAPSHOT, number);
    response
}

/// The number of skipped statements, and the first ones with their positions.
fn skips(skipped: &SkipReport) -> Value {
    let first = skipped.first.iter().map(|bad| {
        json!({
            "document": shortened(&bad.at.file), "line": bad.at.line, "column": bad.at.column,
            "message": shortened(&bad.message), "text": bad.text,
        })
    });
    let mut made = json!({ "statements": skipped.statements, "first": first.collect::<Vec<_>>() });
    if skipped.rest.documents > 0 {
        made["rest"] = json!({ "documents": skipped.rest.documents, "bytes": skipped.rest.bytes });
    }
    made
}

fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}
