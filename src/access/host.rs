//! The host that a URL leads to, as the programs that open it read it.

use url::{Host, Url};

/// A URL that names no host that may be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It is no URL.
    #[error("`{url}` is no URL: {source}")]
    NotUrl {
        /// The text.
        url: String,
        /// What is wrong with it.
        source: url::ParseError,
    },
    /// It leads elsewhere than to a web server.
    #[error("`{0}` is neither http nor https")]
    NotWeb(String),
}

/// The host of an `http` or `https` URL: in lower case, international names in
/// ASCII, addresses in their usual form, without port, name of a user and final
/// dot.
///
/// # Errors
/// When it is no such URL.
pub fn host_of(url: &str) -> Result<String, HostError> {
    let parsed = Url::parse(url).map_err(|source| HostError::NotUrl {
        url: url.to_owned(),
        source,
    })?;
    let host = parsed
        .host()
        .filter(|_| matches!(parsed.scheme(), "http" | "https"));
    match host {
        Some(Host::Domain(name)) if !name.trim_end_matches('.').is_empty() => {
            Ok(name.trim_end_matches('.').to_ascii_lowercase())
        }
        Some(Host::Ipv4(address)) => Ok(address.to_string()),
        Some(Host::Ipv6(address)) => Ok(format!("[{address}]")),
        Some(Host::Domain(_)) | None => Err(HostError::NotWeb(url.to_owned())),
    }
}
