//! `/prefixes`: the prefixes that queries and updates need not declare. GET lists them; PUT and DELETE of one update
//! the store.

use super::form::unescaped;
use super::input::utf8;
use super::update::reported;
use super::{reading, text};
use crate::admission::AdmissionRequest;
use crate::documents;
use crate::guard;
use crate::piece;
use crate::problem::Problem;
use crate::run::{AnswerFailure, Connection};
use crate::shared::AppState;
use crate::write::LiveUpdate;
use axum::body::Body;
use axum::extract::Request;
use http::{Method, Response, StatusCode};
use jindou::{Error, PrefixTable, prefixes_in_effect};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// `/prefixes`: all prefixes.
pub(super) async fn list(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: Request,
) -> Result<Response<Body>, Problem> {
    reading(request.method())?;
    let asked = AdmissionRequest::new("(the prefixes)", None);
    let document = piece::run(shared, connection, &asked, None, |shared, admitted| {
        let _slot = piece::light_slot(shared, &admitted.query)?;
        let table = admitted.db().prefixes();
        let (own, common) = (
            shared.options.store_prefixes,
            shared.options.common_prefixes,
        );
        let all = prefixes_in_effect(Some(&*table).filter(|_| own), common);
        Ok::<_, AnswerFailure>(documents::prefixes(&all))
    });
    let document = document.await?;
    Ok(text("application/json", format!("{document}\n")))
}

/// `/prefixes/NAME`: one prefix.
pub(super) async fn change(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, content) = request.into_parts();
    if !matches!(parts.method, Method::PUT | Method::DELETE) {
        return Err(Problem::method("PUT, DELETE, OPTIONS"));
    }
    guard::may_write(shared, connection, &parts)?;
    let name = parts.uri.path().strip_prefix("/prefixes/");
    let name = unescaped(name.unwrap_or_default().as_bytes(), b'+');
    let name = String::from_utf8(name)
        .map_err(|_| Problem::bad_request("the prefix in the address is not UTF-8"))?;
    let shown = format!("{} {}", parts.method, parts.uri);
    let update = LiveUpdate::admit(shared, connection, &shown, None)?.named(connection, &parts)?;
    if parts.method == Method::DELETE {
        let absent = Arc::new(AtomicBool::new(false));
        let found = Arc::clone(&absent);
        let report = update.run(move |db, options| {
            let done = db.remove_prefix(&name, &options);
            let is_conflict = matches!(done, Err(Error::Conflict(_)));
            found.store(is_conflict && db.prefixes().get(&name).is_none(), Relaxed);
            done
        });
        let report = report.await.map_err(|problem| match absent.load(Relaxed) {
            true => Problem::new(StatusCode::NOT_FOUND, "no-prefix", problem.detail),
            false => problem,
        });
        return Ok(reported(&report?));
    }
    let body = utf8(update.body(content, &parts.headers).await?)?;
    let iri = body.trim().trim_start_matches('<').trim_end_matches('>');
    let iri = iri.to_owned();
    PrefixTable::check(&name, &iri).map_err(|e| Problem::bad_request(e.to_string()))?;
    let report = update.run(move |db, options| db.set_prefix(&name, &iri, &options));
    Ok(reported(&report.await?))
}
