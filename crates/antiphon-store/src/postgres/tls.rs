//! TLS to the database.

use std::sync::Arc;

use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::{StoreError, StoreErrorKind};

/// Returns a connector that verifies the database's certificate: with these authorities, or with the system's.
pub(super) fn connector(root_certificates: Option<&[u8]>) -> Result<MakeRustlsConnect, StoreError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(invalid)?;
    let config = match root_certificates {
        None => builder.with_platform_verifier().map_err(invalid)?.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                roots.add(certificate.map_err(invalid)?).map_err(invalid)?;
            }
            if roots.is_empty() {
                return Err(invalid("the root certificates hold no certificate in PEM"));
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::read(StoreErrorKind::Invalid, "connect", error)
}
