//! Tokens known by their shape alone, whoever they belong to.

use agent::secret::Redactor;

use crate::support::pieces::in_pieces;

/// So many characters, of which none but the first is a word's.
fn body(count: usize) -> String {
    let letters = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3";
    letters.chars().cycle().take(count).collect()
}

fn hex(count: usize) -> String {
    "3f9a1c7e5b2d8064".chars().cycle().take(count).collect()
}

fn upper(count: usize) -> String {
    "Q3J7ZK2MW9XB4T6V".chars().cycle().take(count).collect()
}

/// Beginnings, each with how many letters and digits follow.
const STARTS: &[(&str, usize)] = &[
    ("ghp_", 36),
    ("gho_", 36),
    ("ghs_", 36),
    ("github_pat_", 82),
    ("glpat-", 20),
    ("gldt-", 20),
    ("glrt-", 20),
    ("sk-ant-api03-", 95),
    ("sk-proj-", 48),
    ("sk-", 48),
    ("sk_live_", 24),
    ("rk_live_", 24),
    ("whsec_", 32),
    ("AIza", 35),
    ("ya29.", 60),
    ("GOCSPX-", 28),
    ("xoxb-", 50),
    ("xoxp-", 60),
    ("xapp-1-", 60),
    ("npm_", 36),
    ("pypi-AgEIcHlwaS5vcmc", 100),
    ("hf_", 34),
    ("gsk_", 52),
    ("r8_", 37),
    ("dckr_pat_", 27),
    ("shpat_", 32),
    ("hvs.", 90),
    ("lin_api_", 40),
    ("glsa_", 41),
    ("figd_", 40),
    ("tskey-auth-", 40),
    ("ATATT3", 180),
];

/// The same with digits of base 16.
const HEX_STARTS: &[(&str, usize)] = &[
    ("dop_v1_", 64),
    ("dapi", 32),
    ("SK", 32),
    ("sbp_", 40),
    ("pul-", 40),
    ("rubygems_", 48),
];

/// Names of keys in files, and how their lines end.
const KEY_FILES: &[(&str, &str)] = &[
    ("RSA ", "\n"),
    ("OPENSSH ", "\r\n"),
    ("", "\\n"),
    ("EC ", "\n  "),
];

/// Labels that stay, each with what it is about.
fn labelled() -> Vec<(&'static str, String)> {
    let hook = format!("T0{}/B0{}/{}", upper(8), upper(8), body(24));
    vec![
        ("Authorization: Bearer ", body(40)),
        ("authorization: bearer ", body(40)),
        ("Authorization: Basic ", "dXNlcjpwYXNz".to_owned()),
        (
            "{\"Authorization\":\"Basic ",
            "dXNlcjpwYXNzd29yZDE=".to_owned(),
        ),
        ("AccountName=x;AccountKey=", body(86) + "=="),
        ("SharedAccessKeyName=root;SharedAccessKey=", body(43) + "="),
        ("?sv=2024-01-01&sp=r&sig=", body(43) + "%3D"),
        ("aws_secret_access_key = ", body(40)),
        ("AWS_SECRET_ACCESS_KEY='", body(40)),
        ("\"SecretAccessKey\": \"", body(40)),
        ("https://hooks.slack.com/services/", hook),
        ("PRIVATE-TOKEN: ", body(20)),
        ("bot 1234567890", format!(":AA{}", body(33))),
        ("abc", format!("8Q~{}", body(34))),
    ]
}

/// Logins, and the addresses behind them.
const LOGINS: &[(&str, &str)] = &[
    ("x-access-token:ghs_abc1", "github.com/o/r.git"),
    ("deploy:n0t-the-real-1", "db.internal:5432/app"),
    ("user:p%40ss-w0rd", "proxy:8080"),
    ("0123456789abcdef0123", "host"),
];

/// Tokens, and what is left of each.
fn tokens() -> Vec<(String, String)> {
    let mut whole: Vec<String> = Vec::new();
    whole.extend(
        STARTS
            .iter()
            .map(|(start, count)| format!("{start}{}", body(*count))),
    );
    whole.extend(
        HEX_STARTS
            .iter()
            .map(|(start, count)| format!("{start}{}", hex(*count))),
    );
    whole.push(format!("AKIA{}", upper(16)));
    whole.push(format!("ASIA{}", upper(16)));
    whole.push(format!("AGE-SECRET-KEY-1{}", upper(58)));
    whole.push(format!("SG.{}.{}", body(22), body(43)));
    whole.push(format!("eyJ{}.eyJ{}.{}", body(33), body(60), body(43)));
    for (name, line_break) in KEY_FILES {
        let lines = [
            format!("-----BEGIN {name}PRIVATE KEY-----"),
            body(64),
            body(64),
            body(20) + "==",
            format!("-----END {name}PRIVATE KEY-----"),
        ];
        whole.push(lines.join(line_break));
    }
    let whole = whole.into_iter().map(|token| (token, "***".to_owned()));
    let labelled = labelled().into_iter();
    let labelled = labelled.map(|(label, key)| (format!("{label}{key}"), format!("{label}***")));
    let logins = LOGINS.iter();
    let logins = logins.map(|(login, host)| {
        (
            format!("https://{login}@{host}"),
            format!("https://***@{host}"),
        )
    });
    whole.chain(labelled).chain(logins).collect()
}

#[test]
fn tokens_are_hidden_in_pieces_of_any_size() {
    let tokens = tokens();
    assert!(tokens.len() >= 50);
    let redactor = Redactor::default();
    for (token, left) in tokens {
        for (before, after) in [
            ("", ""),
            ("export TOKEN=\"", "\"; echo done"),
            ("{\"a\":\"\\n", "\\n\",\"b\":1}"),
            ("- it is `", "`, they say\n"),
        ] {
            let text = format!("{before}{token}{after}");
            let expect = format!("{before}{left}{after}");
            assert_eq!(redactor.redact(&text), expect);
            for bytes in (1..=64).take_while(|bytes| *bytes < text.len()) {
                assert_eq!(in_pieces(&redactor, &text, &[bytes]), expect, "by {bytes}");
            }
        }
    }
}

#[test]
fn what_only_looks_like_the_beginning_stays() {
    let redactor = Redactor::default();
    for text in [
        "git clone https://git@github.com/o/r.git && cd r",
        "https://user@host/path and https://user:pass@host/ and http://a:b@c",
        "postgres://$USER:$PASSWORD@db/app, https://{user}:{password1}@host",
        "ssh://git@example.com:2222/r.git?x=a:b@c1234567",
        "see https://example.com/a:b/c@1.2.3 and pkg:npm/%40scope/name@1.2.3",
        "Authorization: Bearer <token>, Authorization: Bearer $GITHUB_TOKEN",
        "the bearer authentication scheme; Basic authentication is not",
        "aws_secret_access_key = YOUR_KEY_HERE and sig=abc and SK of TASK",
        "SKIP DESK SKU-12345 Skipping AKIA ASIATIC AIza1",
        "at 12:34:AA56 and key=:AAAA and C:AAA/BBB",
        "dapi dapiVersion hf_hub_download npm_config_registry npm_lifecycle_event",
        "xoxo-hugs and sk-learn and sk_live_x and SG.1 and glpat-short",
        "risk-0123456789012345678901234567890123456789",
    ] {
        assert_eq!(redactor.redact(text), text);
        for bytes in [1, 2, 3, 7, 16] {
            assert_eq!(in_pieces(&redactor, text, &[bytes]), text);
        }
    }
}
