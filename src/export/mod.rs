//! What happened, rendered for other readers: the result of a run, and a
//! session. Every export is a pure function of what it renders.

mod html;
mod markdown;

pub use html::{save_session_html, session_html};
pub use markdown::markdown;
