//! The check that the bucket creates a name only once.

use super::{Bucket, Failure, Put};
use bytes::Bytes;
use std::time::Duration;
use tokio::task::JoinSet;

/// Concurrent puts of one name.
const AT_ONCE: u8 = 16;
/// Attempts of each put until its outcome is known.
const ATTEMPTS: usize = 8;
/// Delay between two attempts to reach the bucket.
const BETWEEN: Duration = Duration::from_millis(50);

impl Bucket {
    /// Reads an object that does not exist, so that a problem such as missing credentials is reported once and early.
    async fn reachable(&self, name: &str) -> Result<(), String> {
        for attempt in 1.. {
            match self.get(name).await {
                Ok(_) | Err(Failure::Missing) => break,
                Err(Failure::Unknown(_)) if attempt < ATTEMPTS => {
                    tokio::time::sleep(BETWEEN).await;
                }
                Err(failure) => return Err(format!("the bucket cannot be read: {failure}")),
            }
        }
        Ok(())
    }

    /// Creates one name with 16 concurrent puts, of which exactly one may succeed. Sequential puts would not detect a
    /// bucket that checks for the name before it creates the object.
    ///
    /// # Errors
    /// One sentence: the reason why the bucket cannot hold a log.
    pub async fn probe(&self) -> Result<(), String> {
        let name = format!("probe/{:032x}", rand::random::<u128>());
        if self.folder().is_none() {
            self.reachable(&name).await?;
        }
        let mut puts = JoinSet::new();
        for number in 0..AT_ONCE {
            let (bucket, name) = (self.clone(), name.clone());
            puts.spawn(async move {
                let mut last = Failure::Missing;
                for _ in 0..ATTEMPTS {
                    match bucket.create(&name, Bytes::from(vec![number])).await {
                        Put::Failed(Failure::Unknown(why)) => last = Failure::Unknown(why),
                        Put::Failed(failure) => return Err(failure),
                        put => return Ok((number, put)),
                    }
                }
                Err(last)
            });
        }
        let mut winners = Vec::new();
        let mut failed = None;
        while let Some(put) = puts.join_next().await {
            match put {
                Ok(Ok((number, Put::Created))) => winners.push(number),
                Ok(Ok(_)) => {}
                Ok(Err(failure)) => failed = Some(failure),
                Err(e) => failed = Some(Failure::Unknown(e.to_string())),
            }
        }
        let content = self.get(&name).await;
        // A leftover object does no harm.
        let _ = self.delete(std::slice::from_ref(&name)).await;
        if winners.len() > 1 {
            return Err(format!(
                "the bucket lets {} of {AT_ONCE} puts create the same name, so a log in it would lose updates",
                winners.len()
            ));
        }
        if let Some(failure) = failed {
            return Err(format!("the bucket cannot be written: {failure}"));
        }
        let is_as_said = |content: &[u8]| match winners.is_empty() {
            // The answer to the put that created it was lost, or answers a repetition by the bucket's client: "exists".
            true => matches!(content, [number] if *number < AT_ONCE),
            false => content == winners,
        };
        match content {
            Ok(bytes) if is_as_said(&bytes) => Ok(()),
            Ok(_) => Err(
                "the bucket has another object than the one that it says was created, so a log in it would lose updates"
                    .into(),
            ),
            Err(failure) => Err(format!("the bucket cannot be read: {failure}")),
        }
    }
}
