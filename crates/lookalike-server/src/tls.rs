//! TLS, with a certificate that can be replaced while the service runs.

use std::sync::{Arc, RwLock};

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ServerConfig};

use lookalike_store::sync::{read_lock, write_lock};

/// An error in a certificate or key for TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no certificate in the input.
    #[error(
        "no certificate in PEM (BEGIN CERTIFICATE); the chain starts with the certificate of the service"
    )]
    NoCertificate,
    /// A certificate cannot be parsed.
    #[error("a certificate cannot be read: {0}")]
    Certificate(String),
    /// There is no private key in the input.
    #[error("no readable private key in PEM: {0}")]
    Key(String),
    /// The private key is encrypted.
    #[error("the private key is encrypted: decrypt it, for example with openssl pkey")]
    EncryptedKey,
    /// The key belongs to another certificate, or its kind is not supported.
    #[error("certificate and key cannot be used together: {0}")]
    Unusable(rustls::Error),
}

/// The TLS configuration of the service: TLS 1.2 and 1.3, HTTP/2 and 1.1.
#[derive(Debug)]
pub struct ServerTls {
    config: RwLock<Arc<ServerConfig>>,
}

impl ServerTls {
    /// Creates a configuration from a chain of certificates and the key of the first, both in PEM.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Ok(Self {
            config: RwLock::new(config(chain, key)?),
        })
    }

    /// Replaces the certificate for new connections.
    ///
    /// # Errors
    /// [`TlsError`]; the old certificate is then kept.
    pub fn replace(&self, chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        // The right side is evaluated first, so an invalid key takes no lock.
        *write_lock(&self.config) = config(chain, key)?;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        // A handshake keeps the certificate with which it began.
        let config = read_lock(&self.config);
        TlsAcceptor::from(Arc::clone(&config))
    }
}

/// Returns true for a key with the label of RFC 7468 section 11, or with the header of RFC 1421 section 4.6.1.1.
fn is_encrypted(pem: &[u8]) -> bool {
    const MARKS: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];
    let has = |mark: &&[u8]| pem.windows(mark.len()).any(|part| part == *mark);
    MARKS.iter().any(has)
}

fn config(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| TlsError::Certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match is_encrypted(key) {
        true => TlsError::EncryptedKey,
        false => TlsError::Key(error.to_string()),
    })?;
    // Named, because a default of the process would have to be installed by the program.
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Unusable)?;
    // In the order of the server's preference (RFC 7301 section 3.2).
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_key_was_told_to_be_missing() {
        const CHAIN: &[u8] = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let pem = |label: &str, lines: &str| {
            format!("-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
        };
        let refused = |key: String| ServerTls::new(CHAIN, key.as_bytes()).unwrap_err();
        let encrypted = [
            pem("ENCRYPTED PRIVATE KEY", "AAAA"),
            pem(
                "RSA PRIVATE KEY",
                "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA",
            ),
        ];
        for key in encrypted {
            let error = refused(key);
            assert!(matches!(error, TlsError::EncryptedKey), "{error}");
        }
        let error = refused(pem("PUBLIC KEY", "AAAA"));
        assert!(matches!(error, TlsError::Key(_)), "{error}");
    }
}
