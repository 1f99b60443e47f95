//! The store through its public interface, on the real file system.

mod collections;
mod kill;
mod skew;
mod threads;
