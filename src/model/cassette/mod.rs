//! A run's calls of models, kept so that they can be answered again without a
//! network and without a key.
//!
//! A cassette is lines of JSON. The first says what it is, the last how much
//! there is; between them stand the models as they were described, each call
//! with its request, the head of the answer and its frames as they came, and
//! what each tool answered. A request is kept as what it says, in no dialect and
//! without what differs from run to run, so that a new version of an encoder
//! breaks no recording, while the frames run through the decoder of their
//! dialect again. Secrets and the directories of the machine are taken out of
//! everything; a directory is put back as the one of the machine that replays.
//!
//! Nothing here reads or writes a file.

mod difference;
mod file;
mod frames;
mod line;
mod places;
mod recording;
mod replay;
mod request;
mod scrub;

pub use file::CassetteError;
pub use line::{Talk, TapedCall, TapedOutput};
pub use places::Places;
pub use recording::{Recording, TooLarge};
pub use replay::{Cassette, Replay, ToolsFrom};

pub(super) use recording::Taping;
pub(super) use replay::Playback;

/// The most bytes of a cassette.
pub const CASSETTE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The number of `id` in the order of first appearance, from 1.
fn number(known: &mut Vec<String>, id: &str) -> u32 {
    let at = known.iter().position(|other| other == id);
    let at = at.unwrap_or_else(|| {
        known.push(id.to_owned());
        known.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1)
}
