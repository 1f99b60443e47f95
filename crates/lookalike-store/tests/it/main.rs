//! The store through its public interface, on the real file system.

mod collections;
mod kill;
mod removal;
mod sketches;
mod skew;
mod threads;
