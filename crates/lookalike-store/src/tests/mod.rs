//! The store against a slow and obvious model of itself: in peace, in crashes, on failing and on damaged media.

mod crash;
mod damage;
mod dice;
mod faults;
mod model;
mod peace;
mod world;
