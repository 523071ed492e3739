//! A process of its own, since an allocator counts its memory and its time is measured: limits of queries. Its tests take
//! turns.

mod ends;
mod growth;
mod held_once;
mod long_queries;
mod measured;

use jindou::Tracked;
use jindou_testing::Counting;

#[global_allocator]
static ALLOCATOR: Tracked<Counting> = Tracked::over(Counting);
