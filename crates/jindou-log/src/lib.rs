//! The durable log below the store: ordered, checksummed, opaque records, one for each snapshot of an id epoch.
//!
//! A record is acknowledged once it is durable; records that are waiting at the same time are written and synced
//! together. After a crash, all acknowledged records are there, and some of the following records may be: in order,
//! without gaps, and complete. Incomplete data that a crash can leave at the end of the log (a torn tail) is skipped
//! and reported. Any other change of written data is refused as damage, with its file and position.
//! docs/internals/log.md explains the format and its reasons.
//!
//! Start reading at `log.rs`; continue with `format.rs` (the bytes), `writer.rs` (handling of disk errors), `scan.rs`
//! and `recovery.rs` (checks on reading).

mod clock;
mod closed;
mod end;
#[cfg(any(test, feature = "testing"))]
mod faulty;
mod files;
mod format;
mod lock;
mod log;
#[cfg(feature = "object-store")]
mod objects;
mod options;
mod parts;
mod recovery;
mod scan;
mod writer;

pub use end::{END, was_begun};
#[cfg(any(test, feature = "testing"))]
pub use faulty::{Crash, DiskFaults, Faulty};
pub use files::{Directory, File, Files};
pub use lock::StoreLock;
pub use log::{Log, Ticket};
#[cfg(feature = "object-store")]
pub use object_store;
#[cfg(feature = "object-store")]
pub use objects::Objects;
pub use options::{Durability, LogOptions, Status};
pub use parts::{LogPart, is_part, parts, record_after};
pub use recovery::{Recovery, replay};
pub use scan::{Cut, Damage, LogReport, check, check_for};
