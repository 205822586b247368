//! Values beside a name that tells what they are, and all the code and prose in
//! which the same names mean nothing.

use agent::secret::Redactor;
use proptest::prelude::*;
use serde_json::json;

use crate::support::pieces::in_pieces;

const AWS: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const HEX: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// Texts with `@` for a value, and a value that has to be hidden there.
const HIDDEN: &[(&str, &str)] = &[
    ("{\"SecretAccessKey\": \"@\"}", AWS),
    ("{\"SecretAccessKey\":\"@\",\"next\":1}", AWS),
    ("aws_secret_access_key = @", AWS),
    ("aws_secret_access_key=@\nregion=x", AWS),
    ("export AWS_SECRET_ACCESS_KEY=@;", AWS),
    ("\"password\": \"@\"", "hunter2hunter2"),
    ("{\"user\":\"u\",\"password\":\"@\"}", "P@ssw0rd"),
    ("{\\\"password\\\": \\\"@\\\"}", "hunter2hunter2"),
    ("'db_password' => '@',", "hunter2hunter2"),
    ("adminPassword: '@'", "hunter2!hunter2"),
    ("password := \"@\"", "hunter2hunter2"),
    ("passphrase = `@`", "hunter2hunter2"),
    ("PGPASSWORD=@ psql -h db", "hunter2hunter2"),
    ("PGPASSWORD=@", "hunter2hunter2"),
    ("MYSQL_PWD='@' mysql", "hunter2hunter2"),
    ("docker run -e DB_PASSWORD=@ x", "hunter2hunter2"),
    ("{\"password\":\"@\"}", "pa$$w0rd123"),
    ("{\"db_password\":\"@\"}", "Zażółć1gęślą2"),
    ("\"password\": '@'", "пароль-123"),
    ("DB_PASSWORD=@\nx", "hunter2$5Zażółć$"),
    (
        "\"client_secret\": \"@\"",
        "8fK~q2vT5nK9wL4pJ7cB1hY6sD3fG0a",
    ),
    ("client_secret: @", HEX),
    ("clientSecret=\"@\"", HEX),
    ("\"access_token\":\"@\",\"token_type\":\"bearer\"", HEX),
    ("?access_token=@&x=1", HEX),
    ("SLACK_SIGNING_SECRET=@", HEX),
    ("X-Api-Key: @", HEX),
    ("api_key = @", HEX),
    ("_authToken=@", HEX),
    ("CI_DEPLOY_TOKEN=@", "Zr8QmX2vT5nK9wL4pJ7c"),
    ("Authorization: Bearer @", "Zr8QmX2vT5nK9wL4pJ7cB1hY6s"),
    (
        "{\"Authorization\": \"Bearer @\"}",
        "Zr8QmX2vT5nK9wL4pJ7cB1hY6s",
    ),
];

/// What has such names, and nothing to hide.
const SHOWN: &[&str] = &[
    "password = get_password()",
    "password = get_password2()",
    "password = base64.b64decode(text)",
    "password = password1",
    "password=password1, token=token2)",
    "password: String, token: u64, secret: [u8; 32]",
    "let password: Option<Argon2Hash> = None;",
    "self.password = config.db2.password",
    "password=$PASSWORD1 PGPASSWORD=${DB2_PASSWORD} PGPASSWORD=$(pass show db1)",
    "PASSWORD=\"$DB1_PASSWORD\" password: \"{{ secrets.password1 }}\"",
    "password: \"<your-password-123>\" \"password\": \"\" password: '%s1'",
    "password: \"${DB_PASSWORD_1}\" \"password\": \"$$DB_PASSWORD_1\" \"password\": \"db1-$PASSWORD\"",
    "\"password\": \"db1-${PASSWORD}\" PASSWORD=db1word$(id) PASSWORD=db1word$USER password: \"łódź1\"",
    "\"password\": \"密码需要包含A-Z和0-9\" \"password\": \"Hasło musi mieć 8 znaków\"",
    "\"password\": \"/run/secrets/db1\" PGPASSWORD=/run/secrets/db1",
    "\"password\": \"correct horse battery staple 1\"",
    "\"password\": \"changeme\" \"password\": null \"password\": {\"type\": 1}",
    "PASSWORD_FILE=/run/secrets/a1 passwordHash: \"sha256x1x1x1\"",
    "<input type=\"password\" id=\"password1\" name=\"password\" value=\"\">",
    "input[type=password]:hover { color: #123456 }",
    "type: \"password\", name: \"password1_field\"",
    "os.environ[\"SECRET_KEY\"], env::var(\"API_TOKEN\")",
    "secret: db-credentials-2\nsecretName: \"tls-2026-01-01-wildcard\"",
    "\"secret\": \"projects/1234/secrets/name\" secret = \"arn:aws:x:eu-1:123456789012:secret:a\"",
    "\"secret\": \"my-application-secret\" client_secret = read_client_secret_from_file_2(path)",
    "api_key = settings.providers.stripe.api_key_for_tests_2",
    "\"next_page_token\": \"CgwIoNfZtgYQsKu8jgI0\" token = tokens[0]; Token::Word2",
    "const API_KEY = process.env.API_KEY_FOR_PRODUCTION_2;",
    "accessKey: \"MY_ACCESS_KEY_NAME_2\" privateKey: PrivateKeyDer<'static>",
    "The password: it has 12 characters; the secret=1 is short, the token is in a file.",
    "password:\n  from: \"vault\"\nsecret:\n  key: \"a1b2c3d4e5f6\"",
];

#[test]
fn values_beside_a_telling_name_are_hidden() {
    for (text, value) in HIDDEN {
        let (text, expect) = (text.replace('@', value), text.replace('@', "***"));
        assert_eq!(Redactor::default().redact(&text), expect);
        // What was hidden once stays as it is.
        assert_eq!(Redactor::default().redact(&expect), expect);
        for bytes in 1..=64 {
            assert_eq!(
                in_pieces(&Redactor::default(), &text, &[bytes]),
                expect,
                "by {bytes}"
            );
        }
    }
}

#[test]
fn the_same_names_in_code_and_prose_hide_nothing() {
    for text in SHOWN {
        assert_eq!(Redactor::default().redact(text), *text);
        for bytes in [1, 2, 3, 7, 16, 64] {
            assert_eq!(
                in_pieces(&Redactor::default(), text, &[bytes]),
                *text,
                "by {bytes}"
            );
        }
    }
}

#[test]
fn fields_of_documents_are_named_too() {
    let document = json!({
        "command": "login",
        "password": "hunter2hunter2",
        "nested": [{"clientSecret": HEX, "secretName": HEX}],
        "token_type": "bearer",
        "db_password": ["hunter2hunter2"],
        "api_key": "from the environment",
    });
    let expect = json!({
        "command": "login",
        "password": "***",
        "nested": [{"clientSecret": "***", "secretName": HEX}],
        "token_type": "bearer",
        "db_password": ["hunter2hunter2"],
        "api_key": "from the environment",
    });
    assert_eq!(Redactor::default().redact_json(document), expect);
}

fn fragment() -> impl Strategy<Value = String> {
    let hidden = HIDDEN.iter().map(|(text, value)| text.replace('@', value));
    let shown = SHOWN.iter().map(|text| (*text).to_owned());
    let whole: Vec<String> = hidden.chain(shown).collect();
    prop_oneof![
        2 => prop::sample::select(whole.clone()),
        2 => (prop::sample::select(whole), 0_usize..90)
            .prop_map(|(text, at)| text[..text.floor_char_boundary(at)].to_owned()),
        1 => "[ :=\"'\\\\]{0,12}",
        1 => "[a-zA-Z0-9/+]{0,300}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn pieces_give_what_the_whole_gives(
        fragments in prop::collection::vec(fragment(), 0..8),
        sizes in prop::collection::vec(1_usize..80, 1..20),
    ) {
        let text = fragments.concat();
        let whole = Redactor::default().redact(&text).into_owned();
        prop_assert_eq!(in_pieces(&Redactor::default(), &text, &sizes), whole);
    }
}
