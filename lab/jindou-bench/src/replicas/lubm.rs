//! LUBM's queries at a server.

use super::client::Request;
use super::servers::{PATIENCE, Server};
use jindou_workloads::queries::lubm::QUERIES;

/// Says which of L1 to L7 have another number of rows at a server than is known for this many universities.
pub fn wrong_rows(server: &Server, universities: u32) -> Vec<String> {
    let mut client = server.client(PATIENCE);
    let queries = QUERIES.iter().filter(|q| q.name.starts_with('L'));
    let wrong = queries.filter_map(|query| {
        let want = query.rows(universities)?;
        let said = match client.send(&Request::query(query.text, None)) {
            Ok(answer) if answer.is_success() => {
                let rows = answer.text().lines().skip(1).count() as u64;
                (rows != want).then(|| format!("{rows} rows instead of {want}"))?
            }
            Ok(answer) => answer.text(),
            Err(e) => e.to_string(),
        };
        Some(format!("{} at server {}: {said}", query.name, server.name))
    });
    wrong.collect()
}
