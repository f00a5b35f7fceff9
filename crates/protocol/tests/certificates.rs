//! Nodes with certificates on real sockets of 127.0.0.1: who is accepted, who is refused, and what a new file does.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use evenhand_protocol::exchange::{Fixed, NodeState, Record, RecordLimits, Totals};
use evenhand_protocol::transport::{
    Config, CredentialError, CredentialFiles, Credentials, Mode, Peers, TlsError, TlsFiles, TransportError, start,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

const INTERVAL: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(30);

/// An authority that signs certificates of nodes.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    /// Returns a certificate for the node and its private key.
    fn sign(&self, node: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![node.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Returns one that has expired.
    fn sign_expired(&self, node: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![node.to_owned()]).unwrap();
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 1, 1));
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// The folder of a node's files.
struct Files(tempfile::TempDir);

impl Files {
    fn new(authorities: &[&Authority], (certificate, key): (String, String)) -> Files {
        let files = Files(tempfile::tempdir().unwrap());
        files.replace("shared", &"11".repeat(32));
        files.certify(authorities, (certificate, key));
        files
    }

    fn certify(&self, authorities: &[&Authority], (certificate, key): (String, String)) {
        let all: String = authorities.iter().map(|authority| authority.certificate.as_str()).collect();
        for (name, text) in [("node.pem", &certificate), ("node.key", &key), ("authorities.pem", &all)] {
            self.replace(name, text);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces a file by renaming, as its documentation asks for.
    fn replace(&self, name: &str, text: &str) {
        use std::io::Write;
        let new = self.path("new");
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    fn credentials(&self) -> Credentials {
        let [certificate, key, authorities] = ["node.pem", "node.key", "authorities.pem"].map(|name| self.path(name));
        let tls = Some(TlsFiles { certificate, key, authorities });
        Credentials::Files(CredentialFiles { key: self.path("shared"), tls, check: |_: &Path| Ok(()) })
    }
}

fn number(number: f64) -> Fixed {
    Fixed::from_f64(number).unwrap()
}

fn config(name: &str, credentials: impl Into<Credentials>, seeds: &[SocketAddr]) -> Config {
    let listen = ([127, 0, 0, 1], 0).into();
    let limits = RecordLimits::by_factor(number(2.0));
    Config { seeds: seeds.to_vec(), ..Config::new(name, listen, credentials, INTERVAL, limits) }
}

struct Node {
    peers: Box<dyn Peers>,
    name: String,
    sequence: u64,
    totals: Totals,
}

impl Node {
    fn start(config: Config) -> Node {
        let name = config.node.clone();
        Node { peers: start(config).unwrap(), name, sequence: 0, totals: Totals::default() }
    }

    fn address(&self) -> SocketAddr {
        self.peers.local_addr().unwrap()
    }

    fn round(&mut self) {
        self.sequence += 1;
        let (supply, users) = (vec![number(1.0)], BTreeMap::new());
        let record =
            Record { node: self.name.clone(), incarnation: 1, sequence: self.sequence, digest: 1, supply, users };
        self.totals = self.peers.exchange(record);
    }

    /// Returns how many nodes count in full.
    fn counts(&self) -> usize {
        self.totals.nodes.iter().filter(|status| status.state == NodeState::Fresh).count()
    }

    fn rejected(&self) -> u64 {
        self.peers.traffic().rejected
    }
}

/// Exchanges records until the condition holds, up to a time limit.
fn until(nodes: &mut [Node], what: &str, so: impl Fn(&[Node]) -> bool) {
    let begun = Instant::now();
    loop {
        nodes.iter_mut().for_each(Node::round);
        if so(nodes) {
            return;
        }
        let states: Vec<_> = nodes.iter().map(|n| (&n.name, &n.totals.nodes, n.peers.traffic())).collect();
        assert!(begun.elapsed() < LIMIT, "{what}: {states:#?}");
        thread::sleep(INTERVAL);
    }
}

/// Two nodes, the second with these credentials, in both modes; how often each refused must satisfy the condition.
fn refused(authority: &Authority, second: impl Into<Credentials> + Clone, what: &str) {
    for mode in [Mode::Gossip, Mode::Ring] {
        let files = Files::new(&[authority], authority.sign("a"));
        let first = Node::start(Config { mode, ..config("a", files.credentials(), &[]) });
        let seeds = [first.address()];
        let mut nodes = [first, Node::start(Config { mode, ..config("b", second.clone(), &seeds) })];
        until(&mut nodes, what, |nodes| nodes[0].rejected() > 0);
        assert!(nodes.iter().all(|node| node.counts() <= 1), "{what}");
        assert_eq!(nodes.each_ref().map(|node| node.peers.traffic().received), [0, 0], "{what}");
    }
}

#[test]
fn nodes_with_certificates_of_one_authority_agree() {
    for mode in [Mode::Gossip, Mode::Ring] {
        let authority = Authority::new("ours");
        let files = ["a", "b", "c"].map(|name| (name, Files::new(&[&authority], authority.sign(name))));
        let mut nodes: Vec<Node> = Vec::new();
        for (name, files) in &files {
            let seeds: Vec<SocketAddr> = nodes.first().map(Node::address).into_iter().collect();
            nodes.push(Node::start(Config { mode, ..config(name, files.credentials(), &seeds) }));
        }
        until(&mut nodes, "agree", |nodes| nodes.iter().all(|node| node.counts() == 3));
        assert!(nodes.iter().all(|node| node.rejected() == 0 && node.peers.problem().is_none()));
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    // It trusts ours, so that it is ours that refuses it.
    let files = Files::new(&[&ours, &other], other.sign("b"));
    refused(&ours, files.credentials(), "another authority");
}

#[test]
fn a_node_without_certificate_is_refused() {
    refused(&Authority::new("ours"), [0x11; 32], "no certificate, with the right key");
}

#[test]
fn a_certificate_alone_is_not_enough() {
    let authority = Authority::new("ours");
    let files = Files::new(&[&authority], authority.sign("b"));
    files.replace("shared", &"22".repeat(32));
    refused(&authority, files.credentials(), "another shared key");
}

#[test]
fn nobody_speaks_under_a_name_that_is_not_in_its_certificate() {
    let authority = Authority::new("ours");
    let (first, second) =
        (Files::new(&[&authority], authority.sign("a")), Files::new(&[&authority], authority.sign("b")));
    let first = Node::start(config("a", first.credentials(), &[]));
    let seeds = [first.address()];
    let mut liar = start(config("b", second.credentials(), &seeds)).unwrap();
    let mut nodes = [first];
    let mut sequence = 0;
    let begun = Instant::now();
    // A record of c, sent by b.
    while nodes[0].rejected() == 0 {
        sequence += 1;
        let (supply, users) = (vec![number(1.0)], BTreeMap::new());
        liar.exchange(Record { node: "c".into(), incarnation: 1, sequence, digest: 1, supply, users });
        nodes[0].round();
        assert!(begun.elapsed() < LIMIT);
        thread::sleep(INTERVAL);
    }
    assert_eq!(nodes[0].totals.state("c"), None);
    // The node does not start under another name than its certificate's.
    let wrong = start(config("c", second.credentials(), &[])).err().unwrap();
    let named =
        matches!(&wrong, TransportError::Credentials(CredentialError::Tls(TlsError::Name { node, .. })) if node == "c");
    assert!(named, "{wrong}");
    assert!(wrong.to_string().contains("DNS:c"), "{wrong}");
}

#[test]
fn files_that_other_nodes_would_refuse_are_an_error_at_the_start() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let error = |files: &Files| match start(config("a", files.credentials(), &[])) {
        Err(TransportError::Credentials(error)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("started"),
    };
    let text = error(&Files::new(&[&other], ours.sign("a")));
    assert!(text.contains("UnknownIssuer") && text.contains("authorities.pem"), "{text}");
    let text = error(&Files::new(&[&ours], ours.sign_expired("a")));
    assert!(text.to_lowercase().contains("expired"), "{text}");
    let (certificate, _) = ours.sign("a");
    let text = error(&Files::new(&[&ours], (certificate, ours.sign("a").1)));
    assert!(text.contains("node.pem"), "of another certificate: {text}");
    let files = Files::new(&[&ours], ours.sign("a"));
    fs::set_permissions(files.path("node.key"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(error(&files).contains("mode 644"), "{}", error(&files));
    files.replace("node.key", "not a key");
    assert!(error(&files).contains("node.key"), "{}", error(&files));
    files.replace("node.pem", "");
    files.replace("node.key", &ours.sign("a").1);
    assert!(error(&files).contains("node.pem: found no certificate"), "{}", error(&files));
}

#[test]
fn keys_certificates_and_authorities_are_replaced_while_nodes_run() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let files = ["a", "b"].map(|name| Files::new(&[&old], old.sign(name)));
    let first = Node::start(config("a", files[0].credentials(), &[]));
    let seeds = [first.address()];
    let mut nodes = [first, Node::start(config("b", files[1].credentials(), &seeds))];
    let both = |nodes: &[Node]| nodes.iter().all(|node| node.counts() == 2);
    until(&mut nodes, "agree", both);
    // The shared key, in three steps.
    let (before, after) = ("11".repeat(32), "33".repeat(32));
    for step in [format!("{before}\n{after}\n"), format!("{after}\n{before}\n"), after.clone()] {
        for (files, done) in files.iter().zip(1u8..) {
            files.replace("shared", &step);
            // The other node still has the step before.
            settle(&mut nodes, &format!("node {done} at {}", &step[..4]));
            until(&mut nodes, "agree in every step", both);
        }
    }
    // Authorities and certificates.
    for (authorities, signed_by) in [(vec![&old, &new], &old), (vec![&old, &new], &new), (vec![&new], &new)] {
        for (files, name) in files.iter().zip(["a", "b"]) {
            files.certify(&authorities, signed_by.sign(name));
            settle(&mut nodes, name);
            until(&mut nodes, "agree in every step", both);
        }
    }
    assert!(nodes.iter().all(|node| node.peers.problem().is_none()));
    // A node that has only the old ones is refused now.
    let late = Files::new(&[&old, &new], old.sign("c"));
    late.replace("shared", &after);
    let refused_before = nodes[0].rejected();
    let late = start(config("c", late.credentials(), &seeds)).unwrap();
    until(&mut nodes, "the old authority", |nodes| nodes[0].rejected() > refused_before && both(nodes));
    assert_eq!(late.traffic().received, 0);
}

/// Exchanges records for so long that files were examined, connections opened anew, and missing records counted less.
fn settle(nodes: &mut [Node], what: &str) {
    let sent = nodes[0].sequence;
    until(nodes, what, |nodes| nodes[0].sequence >= sent + 18);
}

#[test]
fn files_that_cannot_be_used_leave_the_earlier_ones_in_use() {
    let authority = Authority::new("ours");
    let files = ["a", "b"].map(|name| Files::new(&[&authority], authority.sign(name)));
    let first = Node::start(config("a", files[0].credentials(), &[]));
    let seeds = [first.address()];
    let mut nodes = [first, Node::start(config("b", files[1].credentials(), &seeds))];
    let both = |nodes: &[Node]| nodes.iter().all(|node| node.counts() == 2);
    until(&mut nodes, "agree", both);
    files[0].replace("node.pem", &Authority::new("other").sign("a").0);
    until(&mut nodes, "a problem", |nodes| nodes[0].peers.problem().is_some());
    let problem = nodes[0].peers.problem().unwrap();
    assert!(problem.contains("stay in use") && problem.contains("node.pem"), "{problem}");
    settle(&mut nodes, "goes on");
    until(&mut nodes, "still agree", both);
    files[0].certify(&[&authority], authority.sign("a"));
    until(&mut nodes, "no problem", |nodes| nodes[0].peers.problem().is_none() && both(nodes));
}
