//! Which hosts a list of `sandbox.network` opens.

use agent::sandbox::proxy::{Host, Hosts, Realm, Target, realm};

fn target(text: &str) -> Target {
    Target::parse(text, None).unwrap()
}

#[test]
fn a_list_opens_what_it_names() {
    for (entry, open, shut) in [
        (
            "crates.io",
            &["crates.io:443", "crates.io:80", "CRATES.io.:443"][..],
            &[
                "static.crates.io:443",
                "crates.io:22",
                "crates.io:8443",
                "xcrates.io:443",
                "crates.io.evil.example:443",
                "crates.iq:443",
            ][..],
        ),
        (
            "*.Crates.IO.",
            &["static.crates.io:443", "a.b.crates.io:80"],
            &["crates.io:443", "xcrates.io:443", ".crates.io.evil:443"],
        ),
        (
            "registry.example:8443",
            &["registry.example:8443"],
            &["registry.example:443", "registry.example:80"],
        ),
        (
            "*.registry.example:8443",
            &["a.registry.example:8443"],
            &["a.registry.example:443", "registry.example:8443"],
        ),
        (
            "xn--bcher-kva.example",
            &["XN--BCHER-KVA.example:443"],
            &["bcher-kva.example:443"],
        ),
        (
            "192.0.2.7",
            &["192.0.2.7:443", "[::ffff:192.0.2.7]:443"],
            &["192.0.2.8:443", "192.0.2.7:8080"],
        ),
        (
            "[2001:db8::7]:81",
            &["[2001:db8::7]:81", "[2001:DB8:0::7]:81"],
            &["[2001:db8::7]:80", "[2001:db8::8]:81"],
        ),
        ("10.0.0.0/8", &[], &["10.0.0.1:443", "10.0.0.0:443"]),
    ] {
        let hosts = Hosts::parse([entry]).unwrap();
        for text in open {
            assert!(hosts.allows(&target(text)), "{entry} opens {text}");
        }
        for text in shut {
            let shut = Target::parse(text, None);
            let open = shut.is_ok_and(|shut| hosts.allows(&shut));
            assert!(!open, "{entry} leaves {text} shut");
        }
    }
    assert!(!Hosts::default().allows(&target("crates.io:443")));
}

#[test]
fn what_is_no_entry_says_what_would_be() {
    for (entry, said) in [
        ("https://crates.io/x", "`crates.io`"),
        ("bücher.example", "`xn--bcher-kva.example`"),
        ("*.bücher.example", "`*.xn--bcher-kva.example`"),
        ("*", "network: on"),
        ("*.*.example", "letters"),
        ("cr*.io", "`*.example.org`"),
        ("crates.io/index", "a host has no path"),
        ("user@crates.io", "letters"),
        ("crates.io:0", "1 to 65535"),
        ("crates.io:65536", "1 to 65535"),
        ("crates.io:+443", "1 to 65535"),
        ("crates.io:", "1 to 65535"),
        ("::1", "`[::1]`"),
        ("[::1", "bracket"),
        ("127.1", "four decimal numbers"),
        ("0x7f.0.0.1", "four decimal numbers"),
        ("0x7f000001", "four decimal numbers"),
        ("2130706433", "four decimal numbers"),
        ("127.0.0.01", "four decimal numbers"),
        ("*.10.0.0.1", "nothing below an address"),
        ("", "1 to 253"),
        ("a..b", "between single dots"),
        ("-a.b", "letters"),
        ("a b", "letters"),
        ("0.0.0.0/0", "private network"),
        ("169.254.0.0/16", "private network"),
        ("10.0.0.0/33", "10.0.0.0/8"),
        ("10.0.0.0/+8", "10.0.0.0/8"),
    ] {
        let error = Hosts::parse(["fine.example", entry]).unwrap_err();
        assert!(error.contains(said), "{entry}: {error}");
        assert!(error.starts_with(&format!("`{entry}`")), "{entry}: {error}");
    }
}

#[test]
fn names_lead_only_where_the_list_lets_them() {
    let inside = [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::169.254.169.254",
        "2002:7f00:1::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
    ];
    let outside = [
        "1.1.1.1",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "64:ff9b::1.1.1.1",
    ];
    let hosts = Hosts::parse(["fine.example"]).unwrap();
    let name = Host::parse("fine.example").unwrap();
    for address in inside {
        assert!(!hosts.admits(&name, address.parse().unwrap()), "{address}");
    }
    for address in outside {
        assert!(hosts.admits(&name, address.parse().unwrap()), "{address}");
    }
    for (entry, address, admitted) in [
        ("10.0.0.0/8", "10.1.2.3", true),
        ("10.0.0.0/8", "::ffff:10.1.2.3", true),
        ("10.0.0.0/8", "192.168.0.1", false),
        ("10.1.0.0/16", "10.2.0.1", false),
        ("fc00::/7", "fd12::1", true),
        ("fc00::/7", "fd00:ec2::254", false),
        ("100.64.0.0/10", "100.100.100.200", false),
        ("127.0.0.1:8080", "127.0.0.1", true),
        ("169.254.169.254", "169.254.169.254", true),
        ("169.254.169.254", "169.254.169.253", false),
    ] {
        let hosts = Hosts::parse(["fine.example", entry]).unwrap();
        let address = address.parse().unwrap();
        let found = hosts.admits(&name, address);
        assert_eq!(found, admitted, "{entry} and {address}");
    }
    let hosts = Hosts::parse(["localhost"]).unwrap();
    let localhost = Host::parse("localhost").unwrap();
    assert!(hosts.admits(&localhost, "127.0.0.1".parse().unwrap()));
    assert!(hosts.admits(&localhost, "::1".parse().unwrap()));
    assert!(!hosts.admits(&localhost, "10.0.0.1".parse().unwrap()));
}

#[test]
fn addresses_have_realms() {
    for (address, expect) in [
        ("8.8.8.8", Realm::Public),
        ("192.88.99.1", Realm::Special),
        ("192.31.196.1", Realm::Public),
        ("198.18.0.1", Realm::Special),
        ("240.0.0.1", Realm::Special),
        ("10.255.255.255", Realm::Private),
        ("172.15.255.255", Realm::Public),
        ("2001:db8::1", Realm::Special),
        ("2001::1", Realm::Special),
        ("2001:4860::1", Realm::Public),
        ("2002:a01:203::", Realm::Private),
        ("fd00::1", Realm::Private),
        ("4000::1", Realm::Special),
    ] {
        assert_eq!(realm(address.parse().unwrap()), expect, "{address}");
    }
}

#[test]
fn a_list_may_mean_this_machine() {
    for (entry, means) in [
        ("localhost:8080", true),
        ("127.0.0.1", true),
        ("[::1]:1", true),
        ("*.localhost", true),
        ("crates.io", false),
        ("10.0.0.0/8", false),
    ] {
        let hosts = Hosts::parse([entry]).unwrap();
        assert_eq!(hosts.names_loopback(), means, "{entry}");
    }
}
