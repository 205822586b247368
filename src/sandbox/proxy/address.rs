//! What kind of address a name led to. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whose an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Realm {
    /// Of the Internet.
    Public,
    /// Of an organisation's own network.
    Private,
    /// Of this machine, its link, its cloud, many receivers, or nobody: no name
    /// leads there for a good reason.
    Special,
}

/// The host of a large cloud that answers its guests alone, though its address
/// looks like any other.
const CLOUD_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
/// The same of another cloud, inside the range that providers share.
const CLOUD_METADATA: Ipv4Addr = Ipv4Addr::new(100, 100, 100, 200);
/// The address of the metadata service by the newer protocol.
const CLOUD_METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Whose `address` is, by the registries of special addresses. An address that
/// carries one of the older protocol is of the realm of that one.
pub fn realm(address: IpAddr) -> Realm {
    match address.to_canonical() {
        IpAddr::V4(address) => realm_v4(address),
        IpAddr::V6(address) => realm_v6(address),
    }
}

fn realm_v4(address: Ipv4Addr) -> Realm {
    let [a, b, c, _] = address.octets();
    let special = matches!(
        (a, b, c),
        (0 | 127 | 224.., _, _)
            | (169, 254, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    if special || address == CLOUD_HOST || address == CLOUD_METADATA {
        return Realm::Special;
    }
    match (a, b) {
        (10, _) | (172, 16..=31) | (192, 168) | (100, 64..=127) => Realm::Private,
        _ => Realm::Public,
    }
}

fn realm_v6(address: Ipv6Addr) -> Realm {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        realm_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        _ if address == CLOUD_METADATA_V6 => Realm::Special,
        // Translated to an address of the older protocol on the way.
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => v4(g, h),
        (0x2002, _) => v4(b, c),
        (0xfc00..=0xfdff, _) => Realm::Private,
        // Documentation, tunnels, benchmarks, identifiers.
        (0x2001, 0xdb8 | 0..=0x1ff) | (0x3fff, 0..=0xfff) => Realm::Special,
        (0x2000..=0x3fff, _) => Realm::Public,
        _ => Realm::Special,
    }
}
