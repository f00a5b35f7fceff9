//! Mutual TLS between nodes: both ends of a connection prove by a certificate that they are nodes of this cloud.
//!
//! Only TLS 1.3, whose keys are ephemeral: a recorded connection cannot be decrypted later with a stolen private or shared
//! key. Sessions are never resumed, so that each connection is checked against the present authorities. A node connects to
//! an address, not to a name; it accepts every certificate of the authorities there. The other end compares the name in the
//! certificate with the one that the sender gives itself, so that no node can speak for another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The files of a node's certificate, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The node's certificate, whose alternative names (DNS) include the node's name, and intermediate ones after it.
    pub certificate: PathBuf,
    /// Its private key; no other user may read the file.
    pub key: PathBuf,
    /// The certificates of the authorities that sign those of nodes.
    pub authorities: PathBuf,
}

impl TlsFiles {
    /// Iterates over the files.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.certificate, &self.key, &self.authorities].into_iter().map(PathBuf::as_path)
    }
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("{}: found {found}, expected {expected}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Users other than its owner may read the private key.
    #[error("{}: users other than its owner may read the private key (mode {mode:03o}; set it to 600)", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The certificate is not for this node.
    #[error("{}: the certificate is not for node {node:?} ({source}); its alternative names must include DNS:{node}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The node.
        node: String,
        /// What the certificate has.
        source: Box<Error>,
    },
    /// The certificate is not signed by the authorities, has expired, or does not go with the private key.
    #[error("{}: {source}; expected a certificate of the authorities in {}, valid now, with its own private key", path.display(), authorities.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The file of the authorities.
        authorities: PathBuf,
        /// Why.
        source: Box<Error>,
    },
}

/// Both directions of TLS, with one node's certificate.
pub(crate) struct Tls {
    pub(crate) connector: TlsConnector,
    pub(crate) acceptor: TlsAcceptor,
}

impl Tls {
    /// Reads the files, and checks that other nodes will accept them.
    pub(crate) fn load(files: &TlsFiles, node: &str) -> Result<Tls, TlsError> {
        check_private(&files.key)?;
        let chain = certificates(&files.certificate)?;
        let key =
            PrivateKeyDer::from_pem_file(&files.key).map_err(|e| unreadable(&files.key, &e, "a private key in PEM"))?;
        let mut roots = RootCertStore::empty();
        for authority in certificates(&files.authorities)? {
            let wrong = |e: Error| unreadable(&files.authorities, &e, "certificates of authorities in PEM");
            roots.add(authority).map_err(wrong)?;
        }
        let roots = Arc::new(roots);
        let invalid = |source: Error| TlsError::Certificate {
            path: files.certificate.clone(),
            authorities: files.authorities.clone(),
            source: Box::new(source),
        };
        let provider = Arc::new(ring::default_provider());
        let [leaf, intermediates @ ..] = &chain[..] else {
            return Err(unreadable(&files.certificate, &"no certificate", "a certificate in PEM"));
        };
        let verifier = AnyNode { roots: Arc::clone(&roots), algorithms: provider.signature_verification_algorithms };
        verifier.check(leaf, intermediates, UnixTime::now()).map_err(invalid)?;
        is_certificate_of(leaf, node).map_err(|source| TlsError::Name {
            path: files.certificate.clone(),
            node: node.to_owned(),
            source: Box::new(source),
        })?;
        let server = server_config(&provider, roots, chain.clone(), key.clone_key()).map_err(invalid)?;
        let client = client_config(&provider, verifier, chain, key).map_err(invalid)?;
        Ok(Tls { connector: Arc::new(client).into(), acceptor: Arc::new(server).into() })
    }
}

fn server_config(
    provider: &Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, Error> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider)).build();
    let verifier = verifier.map_err(|e| Error::General(e.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn client_config(
    provider: &Arc<CryptoProvider>,
    verifier: AnyNode,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(chain, key)?;
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

/// Checks that a certificate is for the node of this name.
pub(crate) fn is_certificate_of(certificate: &CertificateDer<'_>, node: &str) -> Result<(), Error> {
    let name = ServerName::try_from(node).map_err(|_| Error::General("it is no DNS name".to_owned()))?;
    verify_server_name(&ParsedCertificate::try_from(certificate)?, &name)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let expected = "certificates in PEM";
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|e| unreadable(path, &e, expected))?;
    if found.is_empty() { Err(unreadable(path, &"no certificate", expected)) } else { Ok(found) }
}

fn unreadable(path: &Path, found: &dyn std::fmt::Display, expected: &'static str) -> TlsError {
    TlsError::File { path: path.to_owned(), found: found.to_string(), expected }
}

fn check_private(path: &Path) -> Result<(), TlsError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let found = std::fs::metadata(path).map_err(|e| unreadable(path, &e, "a private key in PEM"))?;
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TlsError::Exposed { path: path.to_owned(), mode });
        }
    }
    Ok(())
}

/// Accepts the certificate of any node: one that the authorities signed, whatever its name.
#[derive(Debug)]
struct AnyNode {
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyNode {
    fn check(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let leaf = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&leaf, &self.roots, intermediates, now, self.algorithms.all)
    }
}

impl ServerCertVerifier for AnyNode {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(leaf, intermediates, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
