//! The store against a slow and obvious model of itself: in peace, in crashes, on failing and on damaged media.

mod crash;
mod damage;
mod faults;
mod model;
mod model_runs;
mod random_writes;
mod removal;
mod rng;
