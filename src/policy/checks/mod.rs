//! Checks of arguments that the argument table cannot express as lists. Each
//! is named by the rows that it belongs to.

pub(crate) mod build;
pub(crate) mod data;
pub(crate) mod git;
pub(crate) mod network;
pub(crate) mod options;
pub(crate) mod packages;
pub(crate) mod script;
mod script_awk;
mod script_sed;

pub(crate) use script_sed::scripts as sed_scripts;
