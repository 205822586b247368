//! Ordinary text stays as it is: a log full of stars helps nobody, and a patch
//! with stars in it cannot be applied.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use agent::secret::Redactor;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::support::pieces::in_pieces;

/// A machine's usual secrets.
fn redactor() -> Redactor {
    let secrets = [
        "sk-ant-api03-Zr8QmX2vT5nK9wL4pJ7cB1hY6sD3fG0a-AAAAAA",
        "ghp_Zr8QmX2vT5nK9wL4pJ7cB1hY6sD3fG0a2345",
        "correct horse battery staple",
        "n0t-the-real-password",
    ];
    Redactor::new(secrets.map(str::to_owned))
}

fn stays(redactor: &Redactor, name: &str, text: &str) {
    if let Cow::Owned(shown) = redactor.redact(text) {
        let lines = text.lines().zip(shown.lines());
        let changed: Vec<_> = lines.filter(|(before, after)| before != after).collect();
        panic!("{name}: {:?}", changed.iter().take(5).collect::<Vec<_>>());
    }
    let shown = in_pieces(redactor, text, &[997]);
    assert!(shown == text, "{name} changes in pieces");
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn texts_below(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts_below(&path, found);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
}

/// The program's own files.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for dir in ["src", "tasks", "benches", "ci"] {
        texts_below(&root().join(dir), &mut found);
    }
    for file in ["README.md", "Cargo.toml", "Cargo.lock", ".clippy.toml"] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        found.push((file.to_owned(), text));
    }
    assert!(found.len() > 100);
    found
}

#[test]
fn source_code_stays() {
    let redactor = redactor();
    for (name, text) in sources() {
        stays(&redactor, &name, &text);
    }
}

#[test]
fn ordinary_content_in_base64_and_hex_stays() {
    let redactor = redactor();
    for (name, text) in sources() {
        let coded = STANDARD.encode(&text);
        let lines: Vec<String> = coded
            .as_bytes()
            .chunks(76)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        stays(&redactor, &format!("base64 of {name}"), &coded);
        stays(
            &redactor,
            &format!("lines of base64 of {name}"),
            &lines.join("\n"),
        );
        stays(
            &redactor,
            &format!("base64 for URLs of {name}"),
            &URL_SAFE.encode(&text),
        );
        let start = &text.as_bytes()[..text.len().min(20_000)];
        let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
        stays(&redactor, &format!("hex of {name}"), &hex);
    }
}

/// Numbers that differ from each other, the same in each run.
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn hashes_and_ids_stay() {
    let redactor = redactor();
    let mut next = numbers();
    let mut text = String::new();
    for _ in 0..4_000 {
        let [a, b, c, d] = [next(), next(), next(), next()];
        let bytes: Vec<u8> = [a, b, c, d, a ^ c, b ^ d]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        text.push_str(&format!("commit {a:016x}{b:016x}{:08x}\n", c as u32));
        text.push_str(&format!(
            "{a:016x}{b:016x}{c:016x}{d:016x}  file-{d}.tar.gz\n"
        ));
        text.push_str(&format!("{}\n", uuid::Uuid::from_u64_pair(a, b)));
        text.push_str(&format!(
            "\"integrity\": \"sha512-{}\",\n",
            STANDARD.encode(&bytes)
        ));
        text.push_str(&format!(
            "h1:{}= sha256:{c:064x} etag \"{d:x}\"\n",
            STANDARD.encode(&bytes[..32])
        ));
        text.push_str(&format!("index {:07x}..{:07x} 100644\n", a >> 36, b >> 36));
    }
    stays(&redactor, "hashes and ids", &text);
}

#[test]
fn what_tools_print_stays() {
    let redactor = redactor();
    for text in [
        "error[E0308]: mismatched types\n --> src/main.rs:3:5\n  |\n3 |     \"x\"\n  |     ^^^",
        "GET https://registry.npmjs.org/@types%2fnode 200 12ms (cache hit)",
        "docker pull ghcr.io/owner/image@sha256:\
         4b1d0c4a2d2aaf63b37111f34eb9fa89fa1bf53dd6e4ca954d47caebca4005c2",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk4oXQwV1x9Jc3D user@host",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n\
         -----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "The token is in $GITHUB_TOKEN; set ANTHROPIC_API_KEY=sk-ant-... or `npm login`.",
        "see https://github.com/owner/repo/blob/0123456789abcdef0123456789abcdef01234567/a.rs#L1-L2",
        "s3://bucket/key?versionId=3HL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY user@example.com",
    ] {
        stays(&redactor, text, text);
    }
}
