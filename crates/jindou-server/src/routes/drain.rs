//! `/admin/drain`: takes the server out of service, and then shuts it down.

use super::input::Parameters;
use super::{answered, text};
use crate::listen::Phase;
use crate::problem::Problem;
use crate::shared::AppState;
use crate::write::refusal;
use axum::body::Body;
use axum::extract::{Request, State};
use http::{Method, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// Default time between the request and the shutdown; load balancers poll `/ready` every few seconds.
const WAIT: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(3600);

pub(super) async fn handle(
    State(shared): State<Arc<AppState>>,
    request: Request,
) -> Response<Body> {
    let headers = request.headers().clone();
    answered(answer(&shared, request).await, &headers)
}

/// Makes `/ready` report that the server is draining, and makes another server of a shared log the writer. Requests are
/// answered for `wait` more seconds; then the server shuts down as after SIGTERM. A second request changes nothing.
async fn answer(shared: &Arc<AppState>, request: Request) -> Result<Response<Body>, Problem> {
    let (parts, content) = request.into_parts();
    if parts.method != Method::POST {
        return Err(Problem::method("POST"));
    }
    if let Some(problem) = refusal(shared) {
        return Err(problem);
    }
    let most = shared.options.max_request_bytes;
    let parameters = Parameters::of_request(&parts, content, most).await?;
    let wait = match parameters.one("wait")? {
        None => WAIT,
        Some(text) => (text.parse().ok())
            .map(Duration::from_secs)
            .filter(|wait| *wait <= LONGEST)
            .ok_or_else(|| {
                Problem::bad_request(format!(
                    "wait={text} is not a number of seconds from 0 to {}",
                    LONGEST.as_secs()
                ))
            })?,
    };
    if shared.drain() {
        tracing::info!("draining: shutting down in {} s", wait.as_secs());
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            if let Some(replica) = shared.upkeep.replica() {
                replica.drain().await;
            }
            tokio::time::sleep(wait).await;
            // If a signal has started the shutdown meanwhile, a second call would cancel running work.
            if *shared.phase.borrow() == Phase::Serving {
                shared.shut_down();
            }
        });
    }
    let mut response = text("application/json", "{\"status\":\"draining\"}\n");
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}
