//! Limits of queries. A process of its own, since its allocator counts memory; its tests run one at a time, since time
//! is measured.

mod ends;
mod growth;
mod held_once;
mod long_queries;
mod measured;

use jindou::Tracked;
use jindou_testing::Counting;

#[global_allocator]
static ALLOCATOR: Tracked<Counting> = Tracked::over(Counting);
