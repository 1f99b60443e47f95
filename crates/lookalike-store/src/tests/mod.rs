//! The store against a slow and obvious model of itself: in peace, in crashes, on failing and on damaged media.

mod dice;
mod model;
mod peace;
mod world;
