//! Whom an encrypted connection trusts, and what its failures mean.
//!
//! The built-in authorities are always trusted; a bundle adds to them and takes
//! nothing away. Nothing here is made before an encrypted connection is asked
//! for, and no failure is answered with less security.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};

use crate::model::error::{ModelError, ModelErrorKind};

/// Further authorities, as a PEM bundle that is read when it is needed. Cheap
/// to clone.
#[derive(Clone)]
pub struct Authorities {
    /// Who names the bundle, for people: a variable for example.
    origin: Arc<str>,
    read: Arc<dyn Fn() -> Result<Vec<u8>, String> + Send + Sync>,
}

impl fmt::Debug for Authorities {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Authorities")
            .field(&self.origin)
            .finish()
    }
}

impl Authorities {
    /// The bundle that `read` gives, or why it cannot. `origin` names the bundle
    /// in errors.
    pub fn new(
        origin: impl Into<Arc<str>>,
        read: impl Fn() -> Result<Vec<u8>, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            origin: origin.into(),
            read: Arc::new(read),
        }
    }

    /// Reads the bundle.
    ///
    /// # Errors
    /// `Setup` when no connection could be made with it.
    pub fn check(&self) -> Result<(), ModelError> {
        self.add_to(&mut RootCertStore::empty())
    }

    fn add_to(&self, roots: &mut RootCertStore) -> Result<(), ModelError> {
        let unusable = |reason: String| {
            ModelError::new(ModelErrorKind::Setup, format!("{}: {reason}", self.origin))
                .with_hint("name a readable PEM file with certificates of authorities")
        };
        let pem = (self.read)().map_err(unusable)?;
        let mut certificates = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            certificates.push(
                certificate.map_err(|error| unusable(format!("the bundle is broken: {error}")))?,
            );
        }
        if certificates.is_empty() {
            return Err(unusable(
                "the bundle holds no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----"
                    .to_owned(),
            ));
        }
        // Old bundles hold a few that nobody can use any more.
        let (added, ignored) = roots.add_parsable_certificates(certificates);
        match added {
            0 => Err(unusable(format!(
                "none of its {ignored} certificates can be used"
            ))),
            _ => Ok(()),
        }
    }
}

/// How encrypted connections are made.
pub(super) fn encrypted(authorities: Option<&Authorities>) -> Result<ClientConfig, ModelError> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(authorities) = authorities {
        authorities.add_to(&mut roots)?;
    }
    config(roots)
}

/// What the HTTP client wants all the same when no connection is encrypted. It
/// trusts nobody.
pub(super) fn plain() -> Result<ClientConfig, ModelError> {
    config(RootCertStore::empty())
}

fn config(roots: RootCertStore) -> Result<ClientConfig, ModelError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ModelError::new(ModelErrorKind::Setup, error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// What to do about a connection that failed for reasons of TLS; none when it
/// failed for others.
pub(super) fn advice(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref() {
        return Some(advice_on(error));
    }
    // The source of an input error is that of its inner error, not the latter.
    let inner = error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref);
    match inner {
        Some(inner) => advice(inner),
        None => error.source().and_then(advice),
    }
}

fn advice_on(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                "the server's certificate is out of date, or the clock of this machine is wrong"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the server's certificate is for another host; check base_url"
            }
            _ => {
                "the authority behind the server's certificate is not trusted; if it is your own, \
                 name a PEM file with its certificate in SSL_CERT_FILE"
            }
        },
        rustls::Error::InvalidMessage(_) => {
            "the server does not speak TLS there; check base_url, which may have to begin with http://"
        }
        _ => "the server and this program cannot agree on a TLS connection",
    }
}
