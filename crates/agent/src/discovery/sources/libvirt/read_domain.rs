//! Reads the state of a running domain, as libvirt stores it on disk.
//!
//! The elements are those of <https://libvirt.org/formatdomain.html>, within a `domstatus` with elements of libvirt's
//! own.

use roxmltree::{Document, Node};

/// A running domain.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Domain {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) owner: Option<String>,
    pub(super) processors: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) devices: Vec<String>,
}

/// The place of the owner in the metadata: nested elements from the outside in, at any depth, and optionally an
/// attribute. Namespace prefixes are ignored, because the writer may choose any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerPath {
    elements: Vec<String>,
    attribute: Option<String>,
}

impl OwnerPath {
    /// Returns the place of the user who started an OpenStack instance.
    pub(super) fn nova() -> OwnerPath {
        OwnerPath { elements: ["instance", "owner", "user"].map(str::to_owned).into(), attribute: None }
    }

    /// Parses `instance/owner/project`, `nova:user`, `booking/@owner`, or the words `nova` and `nova-project`.
    pub(super) fn parse(text: &str) -> Result<OwnerPath, String> {
        let error = || {
            format!("found {text:?}, expected nova, nova-project, or elements such as booking/user or booking/@user")
        };
        let parts = match text {
            "nova" => return Ok(OwnerPath::nova()),
            "nova-project" => "instance/owner/project",
            other => other,
        };
        let mut path = OwnerPath { elements: Vec::new(), attribute: None };
        for part in parts.split('/') {
            let plain = part.strip_prefix('@').unwrap_or(part);
            let local = plain.rsplit_once(':').map_or(plain, |(_, local)| local);
            if local.is_empty() || local.contains(char::is_whitespace) || path.attribute.is_some() {
                return Err(error());
            }
            match part.starts_with('@') {
                true => path.attribute = Some(local.to_owned()),
                false => path.elements.push(local.to_owned()),
            }
        }
        if path.elements.is_empty() { Err(error()) } else { Ok(path) }
    }

    /// Returns the first non-empty value in document order.
    fn find(&self, metadata: Node<'_, '_>) -> Option<String> {
        metadata.descendants().find_map(|node| {
            // From the inside out.
            let mut outer = Some(node);
            for name in self.elements.iter().rev() {
                let element = outer.filter(|n| n.is_element() && *n != metadata && n.tag_name().name() == name)?;
                outer = element.parent();
            }
            let value = match &self.attribute {
                Some(name) => node.attributes().find(|a| a.name() == name).map(|a| a.value())?,
                None => node.text()?,
            };
            Some(value.trim().to_owned()).filter(|value| !value.is_empty())
        })
    }
}

/// Returns the first child element with this name.
fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|n| n.has_tag_name(name))
}

impl Domain {
    /// Parses the state of a running domain, with or without the `domstatus` around it.
    pub(super) fn parse(text: &str, owner: &OwnerPath) -> Result<Domain, String> {
        let document = Document::parse(text).map_err(|error| error.to_string())?;
        let root = document.root_element();
        let domain = if root.has_tag_name("domain") { Some(root) } else { child(root, "domain") };
        let domain = domain.ok_or("found no element domain, expected the state of a running domain")?;
        let id = domain.attribute("id").and_then(|id| id.parse().ok());
        let name = child(domain, "name").and_then(|n| n.text()).map(str::trim).filter(|name| !name.is_empty());
        Ok(Domain {
            id: id.ok_or("found no number of the domain, expected one that runs: <domain id='1'>")?,
            name: name.ok_or("found no name of the domain, expected <name>…</name>")?.to_owned(),
            owner: child(domain, "metadata").and_then(|metadata| owner.find(metadata)),
            processors: child(domain, "vcpu").and_then(processors),
            memory_bytes: child(domain, "memory").and_then(memory),
            devices: child(domain, "devices").map(taps).unwrap_or_default(),
        })
    }
}

/// Returns the number of virtual processors that are plugged in now.
fn processors(vcpu: Node<'_, '_>) -> Option<f64> {
    let maximum = vcpu.text()?.trim().parse::<u32>().ok();
    let now = vcpu.attribute("current").and_then(|n| n.trim().parse().ok()).or(maximum)?;
    (now > 0).then(|| f64::from(now))
}

fn memory(memory: Node<'_, '_>) -> Option<u64> {
    let bytes: u64 = match memory.attribute("unit").unwrap_or("KiB") {
        "b" | "bytes" => 1,
        "KB" => 1000,
        "k" | "K" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "M" | "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "G" | "GiB" => 1 << 30,
        "TB" => 1_000_000_000_000,
        "T" | "TiB" => 1 << 40,
        _ => return None,
    };
    memory.text()?.trim().parse::<u64>().ok()?.checked_mul(bytes).filter(|bytes| *bytes > 0)
}

/// Returns the host devices of its network interfaces.
fn taps(devices: Node<'_, '_>) -> Vec<String> {
    let interfaces = devices.children().filter(|n| n.has_tag_name("interface"));
    let target = |n: Node<'_, '_>| child(n, "target").and_then(|t| t.attribute("dev")).map(str::to_owned);
    interfaces.filter_map(target).filter(|device| !device.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Written by libvirt 11.3 with QEMU 10.0; of QEMU's capabilities only the first three are kept.
    const REAL: &str = include_str!("../../../../tests/data/web-1.a.xml");

    fn read(text: &str) -> Result<Domain, String> {
        Domain::parse(text, &OwnerPath::nova())
    }

    #[test]
    fn a_file_of_libvirt_is_parsed() {
        let found = read(REAL).unwrap();
        let expected = Domain {
            id: 1,
            name: "web-1.a".into(),
            owner: Some("alice".into()),
            processors: Some(1.0),
            memory_bytes: Some(64 << 20),
            devices: vec!["tapa".into()],
        };
        assert_eq!(found, expected);
        let owner = |path: &str| Domain::parse(REAL, &OwnerPath::parse(path).unwrap()).unwrap().owner;
        assert_eq!(owner("nova-project").as_deref(), Some("physics"));
        assert_eq!(owner("nova:owner/nova:user/@uuid").as_deref(), Some("18509018d00743c89518135e476003e0"));
        assert_eq!(owner("lab:booking/@owner").as_deref(), Some("bob"));
        assert_eq!(owner("user").as_deref(), Some("alice"));
        assert_eq!(owner("owner"), None);
        assert_eq!(owner("booking/user"), None);
        assert_eq!(owner("metadata/instance/owner/user"), None);
    }

    #[test]
    fn sizes_are_converted_to_processors_and_bytes() {
        let of = |vcpu: &str, memory: &str| {
            let found = read(&format!("<domain id='3'><name>a</name>{memory}{vcpu}</domain>")).unwrap();
            (found.processors, found.memory_bytes)
        };
        assert_eq!(of("<vcpu>4</vcpu>", "<memory>1024</memory>"), (Some(4.0), Some(1 << 20)));
        assert_eq!(of("<vcpu current='0'>4</vcpu>", "<memory unit='GB'>2</memory>"), (None, Some(2_000_000_000)));
        assert_eq!(of("<vcpu>x</vcpu>", "<memory unit='TiB'>99999999999</memory>"), (None, None));
        assert_eq!(of("", "<memory unit='bushel'>1</memory>"), (None, None));
    }

    #[test]
    fn other_documents_are_rejected() {
        assert!(read("<domain id='1'/>").unwrap_err().contains("no name"));
        assert!(read("<domain><name>a</name></domain>").unwrap_err().contains("no number"));
        assert!(read("<domstatus/>").unwrap_err().contains("no element domain"));
        assert!(read("<!DOCTYPE a [<!ENTITY b 'c'>]><domain id='1'><name>&b;</name></domain>").is_err());
        // Nested deeper than any stack.
        assert!(read(&"<domain>".repeat(100_000)).is_err());
        let deep = format!("<domain id='1'><name>a</name>{}{}</domain>", "<a>".repeat(100_000), "</a>".repeat(100_000));
        let _ = read(&deep);
    }

    #[test]
    fn malformed_owner_paths_are_rejected() {
        for wrong in ["", "/", "a//b", "@a", "a/@b/c", "a b", "a/@", "x:"] {
            assert!(OwnerPath::parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(OwnerPath::parse("nova"), OwnerPath::parse("instance/owner/user"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed_or_rejected(text in "(<|>|/|domain| id='1'|name|metadata|instance|owner|user|memory| unit='|vcpu|interface|target| dev='|'|&|;|<a>|</a>|1|\\PC){0,24}") {
            let _ = read(&text);
        }

        #[test]
        fn truncated_or_changed_files_are_parsed_or_rejected(at in 0..REAL.len(), to in "[<>&'\"/!\\[\\]a1]{0,3}", cut: bool) {
            if REAL.is_char_boundary(at) {
                let rest = if cut { "" } else { &REAL[at..] };
                let _ = read(&format!("{}{to}{rest}", &REAL[..at]));
            }
        }
    }
}
