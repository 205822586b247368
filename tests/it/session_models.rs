//! Which model a session asks: what was named, what a session had, what there
//! are credentials for.

use agent::clock::Activity;
use agent::event::EventKind;
use agent::model::{Client, ClientOptions, Model, ModelErrorKind, Script, resolve};
use agent::session::{ChoiceError, Credential, Credentials, Models, Pick, Session, SessionOptions};
use agent::store::{EntryKind, Header, Store};

const SONNET: &str = "anthropic/claude-sonnet-4-5";
const GLM: &str = "zai/glm-5.3";

fn options() -> ClientOptions {
    ClientOptions::new(Activity::new())
}

/// Models of the providers of which there are keys.
fn models(providers: &[&str]) -> Models {
    let keys = providers
        .iter()
        .map(|name| (*name, format!("key-of-{name}")));
    Models::new(Credentials::keys(keys), options())
}

fn scripted(name: &str) -> Client {
    let script = Script::parse("[]", name).unwrap();
    Client::scripted(resolve(name, None).unwrap(), script, options())
}

/// The name that is picked, and the words that tell of it.
fn check(
    models: &Models,
    given: Option<&str>,
    restored: Option<(&str, &str)>,
    expect: (&str, Option<&str>),
) {
    let pick = models.pick(given, restored).unwrap();
    let expect = Pick {
        name: expect.0.to_owned(),
        fallback: expect.1.map(str::to_owned),
    };
    assert_eq!(pick, expect, "{given:?} {restored:?}");
}

#[test]
fn what_is_named_wins_then_the_sessions_own_then_the_default() {
    let both = models(&["anthropic", "zai"]).with_default("openai/gpt-6.1-sol");
    let had = Some(("zai", "glm-5.3"));
    check(&both, Some(SONNET), had, (SONNET, None));
    check(&both, None, had, (GLM, None));
    check(&both, None, None, ("openai/gpt-6.1-sol", None));
    // Without a key it is named all the same, and an error later.
    check(&both, Some("groq/x"), had, ("groq/x", None));
}

#[test]
fn without_any_name_the_first_provider_with_a_key_answers_and_is_told() {
    let told = "no model is named: zai/glm-5.3 is used, because there are credentials for it";
    check(&models(&["zai"]), None, None, (GLM, Some(told)));
    let two = models(&["openai", "anthropic"]);
    assert_eq!(
        two.pick(None, None).unwrap().name,
        "anthropic/claude-sonnet-5"
    );
    let own = models(&["openai", "mistral"]).with_candidates(["mistral/devstral-2512"]);
    assert_eq!(own.pick(None, None).unwrap().name, "mistral/devstral-2512");
    // A key file that cannot be read was meant to be one.
    let broken = Credentials::new(|model: &Model| match model.provider.as_str() {
        "openai" => Err("cannot read key.txt".to_owned()),
        _ => Ok(Credential::default()),
    });
    let mut broken = Models::new(broken, options());
    assert!(broken.pick(None, None).unwrap().name.starts_with("openai/"));
    assert_eq!(
        broken.choose(None, None).unwrap_err(),
        ChoiceError::Credentials("cannot read key.txt".to_owned())
    );
}

#[test]
fn a_session_whose_model_cannot_be_asked_any_more_is_told_which_answers() {
    let had = Some(("anthropic", "claude-sonnet-4-5"));
    let lost = "the session's model anthropic/claude-sonnet-4-5 cannot be asked: \
                there is no key for anthropic";
    let default = models(&["zai"]).with_default(GLM);
    let told = format!("{lost}; the default, zai/glm-5.3, is used");
    check(&default, None, had, (GLM, Some(&told)));
    let told = format!("{lost}: zai/glm-5.3 is used, because there are credentials for it");
    check(&models(&["zai"]), None, had, (GLM, Some(&told)));

    // A blank key is none.
    let blank = Models::new(
        Credentials::keys([("anthropic", " \n"), ("zai", "k")]),
        options(),
    );
    assert_eq!(blank.pick(None, had).unwrap().name, GLM);

    // What only looks like it is another model.
    for had in [
        ("anthropic", "gone-1"),
        ("z-ai", "glm-5.3"),
        ("", "claude-sonnet-4-5"),
        ("scripted", "replies"),
        ("", ""),
    ] {
        let pick = default.pick(None, Some(had)).unwrap();
        let told = pick.fallback.unwrap();
        assert!(told.contains("there is no such model"), "{had:?}: {told}");
        assert_eq!(pick.name, GLM);
    }
}

#[test]
fn a_session_keeps_a_model_that_needs_no_key() {
    let local = models(&[]).with_base_url("http://127.0.0.1:9/v1");
    let had = Some(("openai-chat", "local"));
    check(&local, None, had, ("openai-chat/local", None));
    let ready = models(&[]).with_client(scripted("scripted/replies.yaml"));
    let had = Some(("scripted", "replies"));
    check(&ready, None, had, ("scripted/replies", None));
    // A key that should be there is missed when the model is asked, not before.
    let broken = Credentials::new(|_: &Model| Err("cannot read key.txt".to_owned()));
    let broken = Models::new(broken, options()).with_default(GLM);
    let had = Some(("anthropic", "claude-sonnet-4-5"));
    check(&broken, None, had, (SONNET, None));
}

#[test]
fn a_name_that_no_model_has_is_an_error_and_never_a_guess() {
    let mut all = models(&["anthropic", "zai"]).with_default("zai/glm-5.33");
    let typo = all.choose(Some("anthropic/claude-sonet-4-5"), None);
    let ChoiceError::Unknown(unknown) = typo.unwrap_err() else {
        panic!("a typo is no model");
    };
    assert_eq!(unknown.nearest[0], SONNET);
    assert!(unknown.message.contains("did you mean"), "{unknown}");
    let default = all.choose(None, None).unwrap_err();
    assert!(
        default
            .to_string()
            .starts_with("unknown model `zai/glm-5.33`"),
        "{default}"
    );
    let script = all.choose(Some("scripted/none.yaml"), None).unwrap_err();
    assert_eq!(
        script.to_string(),
        "there is no script for `scripted/none.yaml`"
    );
}

#[test]
fn without_any_model_the_error_says_what_to_set() {
    let mut none = Models::new(Credentials::none(), options());
    let error = none.choose(None, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no model is named, and there are no credentials to choose one by"
    );
    let hints = error.hints();
    assert!(
        hints[0].starts_with("name a model, provider/id, or set the key of a provider: ANTHROPIC_API_KEY, OPENAI_API_KEY, "),
        "{hints:?}"
    );
    let had = none.choose(None, Some(("zai", "glm-5.3"))).unwrap_err();
    assert_eq!(
        had.to_string(),
        "the session's model zai/glm-5.3 cannot be asked: there is no key for zai; \
         no model is named, and there are no credentials to choose one by"
    );
    // A model that was named is missed by its key.
    let named = none.choose(Some(SONNET), None).unwrap_err();
    let ChoiceError::Client(error) = &named else {
        panic!("{named}");
    };
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(named.hints(), ["set ANTHROPIC_API_KEY to a valid key"]);
}

#[test]
fn a_base_url_belongs_to_the_provider_of_the_chosen_model() {
    const GATEWAY: &str = "https://gateway.example/v1";
    let url = |models: &Models, name: &str| models.client(name).unwrap().model().base_url.clone();
    let mut all = models(&["anthropic", "zai"]).with_base_url(GATEWAY);
    let chosen = all.choose(Some(SONNET), None).unwrap();
    assert_eq!(chosen.client.model().base_url, GATEWAY);
    assert_eq!(url(&all, "anthropic/claude-haiku-4-5"), GATEWAY);
    // The key of another provider does not go there.
    assert_eq!(url(&all, GLM), resolve(GLM, None).unwrap().base_url);

    // What the environment says of a provider holds without it.
    let moved = Credentials::new(|model: &Model| {
        Ok(Credential {
            key: Some("k".to_owned()),
            base_url: (model.provider == "zai").then(|| GATEWAY.to_owned()),
        })
    });
    let moved = Models::new(moved, options());
    assert_eq!(url(&moved, GLM), GATEWAY);
    assert_eq!(url(&moved, SONNET), "https://api.anthropic.com");
    let both = moved.with_base_url("https://other.example");
    assert_eq!(url(&both, GLM), "https://other.example");
    let wrong = both.with_base_url("gateway").client(GLM).unwrap_err();
    assert!(
        wrong.to_string().starts_with("base_url `gateway`: "),
        "{wrong}"
    );
}

#[test]
fn a_ready_client_answers_to_its_id() {
    let mut one = models(&[]).with_client(scripted("scripted/first.yaml"));
    for name in ["scripted/first", "scripted/elsewhere/first.yaml"] {
        let chosen = one.choose(Some(name), None).unwrap();
        assert_eq!(chosen.client.model().full_id(), "scripted/first");
        assert_eq!(chosen.fallback, None);
    }
    // A model that no catalog has.
    let mut model = resolve(GLM, None).unwrap();
    model.provider = "house".to_owned();
    let key = Some("k".to_owned());
    let house = Client::http(model, key, options()).unwrap();
    let one = one.with_client(house);
    assert_eq!(
        one.client("house/glm-5.3").unwrap().model().provider,
        "house"
    );
    assert!(one.client("house/glm-5").is_err());
}

#[test]
fn nothing_shows_a_key() {
    let credential = Credential {
        key: Some("sk-secret".to_owned()),
        base_url: Some("https://me:sk-secret@host/v1".to_owned()),
    };
    let mut models = Models::new(Credentials::keys([("zai", "sk-secret")]), options());
    let chosen = models.choose(Some(GLM), None).unwrap();
    for shown in [
        format!("{credential:?}"),
        format!("{models:?}"),
        format!("{chosen:?}"),
    ] {
        assert!(!shown.contains("sk-secret"), "{shown}");
    }
    assert!(format!("{credential:?}").contains("***"));
}

#[tokio::test]
async fn a_client_that_was_given_takes_over_a_session_without_a_word() {
    let mut store = Store::in_memory(Header::new("/srv/project"));
    let before = EntryKind::ModelChange {
        provider: "anthropic".to_owned(),
        model_id: "claude-sonnet-4-5".to_owned(),
    };
    store.append(before).unwrap();
    let (sender, mut events) = tokio::sync::mpsc::channel(64);
    let client = scripted("scripted/own");
    let mut given = SessionOptions::new(client, Activity::new(), "/srv/project", sender);
    given.store = store;
    let created = Session::create(given).await.unwrap();
    assert_eq!(created.model_fallback_message, None);
    assert_eq!(created.session.model(), "scripted/own");
    drop(created);
    let mut told = Vec::new();
    while let Some(emission) = events.recv().await {
        told.push(emission.kind);
    }
    assert!(matches!(told[..], [EventKind::SessionReady(_)]), "{told:?}");
}
