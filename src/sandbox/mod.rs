//! How the kernel enforces what policy decided.

pub mod proxy;
