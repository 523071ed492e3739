//! Check that the bucket implements create-only puts, which the protocol depends on.

use super::{Bucket, Failure, Put};
use bytes::Bytes;
use std::time::Duration;
use tokio::task::JoinSet;

/// Number of concurrent puts of the same name.
const AT_ONCE: u8 = 16;
/// Number of attempts of each put until its outcome is known.
const ATTEMPTS: usize = 8;
/// Delay between two attempts to reach the bucket.
const BETWEEN: Duration = Duration::from_millis(50);

impl Bucket {
    /// Reads an object that does not exist, so that a problem such as missing credentials is reported once, before the
    /// puts.
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
    /// A sentence with the reason why the bucket cannot contain a log.
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
        // Errors are ignored: a leftover object is harmless.
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
            // No put reported success: the response to the successful one was lost, and its retry found the object. Any
            // content of the puts is right then.
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
