//! Times of entries for people: always UTC, as the session has them.

use std::io;

use jiff::Timestamp;

use super::page::Page;

/// A time of an entry.
pub(super) struct When<'a> {
    text: &'a str,
    time: Option<Timestamp>,
}

impl<'a> When<'a> {
    /// As an entry spells it; what is no time is shown as it stands.
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            text,
            time: text.parse().ok(),
        }
    }

    /// The day, `Fri 21 Nov 2025`.
    pub(super) fn day(&self) -> Option<String> {
        self.time
            .map(|time| time.strftime("%a %-d %b %Y").to_string())
    }

    /// Writes the time of the day.
    pub(super) fn clock(&self, page: &mut Page<'_>) -> io::Result<()> {
        self.write(page, "%H:%M:%S")
    }

    /// Writes day and time.
    pub(super) fn whole(&self, page: &mut Page<'_>) -> io::Result<()> {
        self.write(page, "%a %-d %b %Y, %H:%M:%S UTC")
    }

    fn write(&self, page: &mut Page<'_>, form: &str) -> io::Result<()> {
        let Some(time) = self.time else {
            return page.text(self.text);
        };
        page.raw("<time")?;
        page.attribute("datetime", &format!("{time:.3}"))?;
        page.attribute("title", &time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())?;
        page.raw(">")?;
        page.text(&time.strftime(form).to_string())?;
        page.raw("</time>")
    }
}

/// Milliseconds between the first and the last of some times.
pub(super) fn span<'a>(times: impl Iterator<Item = &'a str>) -> Option<u64> {
    let mut range: Option<(Timestamp, Timestamp)> = None;
    for time in times.filter_map(|text| text.parse::<Timestamp>().ok()) {
        range = Some(match range {
            None => (time, time),
            Some((first, last)) => (first.min(time), last.max(time)),
        });
    }
    let (first, last) = range?;
    u64::try_from(last.as_millisecond() - first.as_millisecond()).ok()
}
