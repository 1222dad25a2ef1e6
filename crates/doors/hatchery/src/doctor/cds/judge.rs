//! What the answers of a CDS API mean.

use std::time::Duration;

use roost_cds::{HATCHERY_TYPE, v1};

use super::collect::{Facts, Token};
use roost_doctor::clock::{self, Clocks};
use roost_doctor::{Fact, Finding};

/// Worker tokens say when they were made; the API is not patient with those of the future.
const CLOCKS: Clocks = Clocks {
    server: "the CDS API",
    limit: Duration::from_mins(5),
    harm: "it refuses the tokens of workers as too old or too new",
    nuisance: "times of jobs and logs are off by that much",
};

/// CDS's hatcheries give up on a model after this many failures in a row.
const MOST_SPAWN_ERRORS: i64 = 5;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let advice = "what answers there is no CDS API, or it is starting; check api.http.url";
    let version = facts.version.judge("version", advice, |version| {
        if version.is_empty() {
            return Finding::warn("version", "what answers does not say that it is a CDS API")
                .advice(advice);
        }
        Finding::pass("version", format!("CDS {version}"))
    });
    let mut findings = vec![version, clock::judge(CLOCKS, &facts.skew)];
    if let Some(token) = &facts.v1 {
        findings.push(of_token("V1 token", "api.token", token, facts.region.as_deref()));
        findings.push(models(&facts.models));
    }
    if let Some(token) = &facts.v2 {
        findings.push(of_token("V2 token", "api.tokenV2", token, facts.region.as_deref()));
    }
    findings
}

fn of_token(check: &str, key: &str, token: &Token, region: Option<&str>) -> Finding {
    match token {
        Token::Accepted => Finding::pass(
            check,
            "accepted; nothing was registered, so that a hatchery at work is not disturbed",
        ),
        Token::Known => Finding::pass(
            check,
            "known to CDS; nothing was registered, so that a hatchery at work is not disturbed",
        ),
        Token::SignedIn { region: told } => signed_in(check, told.as_deref(), region),
        Token::Refused(why) => Finding::fail(check, format!("refused: {why}")).advice(format!(
            "make a new one in CDS (for a V2 hatchery: regenerate it; its name must be commonConfiguration.name, and it must be \
             allowed to start workers in a region) and put it into {key}"
        )),
        Token::Unclear(why) => Finding::warn(check, format!("not to be tried without registering: {why}"))
            .advice("say --sign-in when no hatchery with another key is at work under this name"),
        Token::Failed(why) => Finding::fail(check, why).advice("see the log of the CDS API for the request"),
        Token::NotTried => Finding::skip(
            check,
            "not tried: the only sign-in there is replaces the address, configuration and key of this hatchery in CDS",
        )
        .advice("say --sign-in, unless a hatchery with another key is at work under this name: its workers would be refused"),
        Token::Skipped(why) => Finding::skip(check, why),
    }
}

fn signed_in(check: &str, told: Option<&str>, configured: Option<&str>) -> Finding {
    match (told, configured) {
        (Some(told), Some(configured)) if told != configured => Finding::warn(
            check,
            format!("signed in; CDS says region {told:?}, and the file {configured:?}"),
        )
        .advice("the one of CDS counts; correct provision.region, or make a new token"),
        (Some(told), _) => Finding::pass(check, format!("signed in, for region {told:?}")),
        (None, _) => Finding::pass(check, "signed in"),
    }
}

fn models(models: &Fact<Vec<v1::Model>>) -> Finding {
    const CHECK: &str = "V1 models";
    models.judge(CHECK, "see the log of the CDS API for the request", |models| {
        let ours: Vec<&v1::Model> =
            models.iter().filter(|model| model.model_type == HATCHERY_TYPE).collect();
        if ours.is_empty() {
            return Finding::pass(
                CHECK,
                format!("none of type {HATCHERY_TYPE} is enabled and visible to the token"),
            );
        }
        let given_up = ours.iter().filter(|model| model.nb_spawn_err > MOST_SPAWN_ERRORS);
        let given_up: Vec<String> = given_up
            .map(|model| {
                let why = model.last_spawn_err.as_deref().unwrap_or("no reason given");
                format!("{}: {why}", model.path().short())
            })
            .collect();
        if !given_up.is_empty() {
            return Finding::warn(
                CHECK,
                "some are not registered any more, because it failed too often",
            )
            .details(given_up)
            .advice("correct them in CDS; saving a model sets its failures to zero");
        }
        let names: Vec<String> = ours.iter().map(|model| model.path().short()).collect();
        Finding::pass(
            CHECK,
            format!("{} of type {HATCHERY_TYPE}: {}", ours.len(), names.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_doctor::Verdict;

    fn facts(v1: Option<Token>, v2: Option<Token>) -> Facts {
        Facts {
            version: Fact::Known("0.57.0".into()),
            skew: Fact::Skipped("the API does not tell its time".into()),
            v1,
            v2,
            models: Fact::Known(Vec::new()),
            region: Some("eu".into()),
        }
    }

    fn verdict_of(check: &str, facts: &Facts) -> Verdict {
        judge(facts).into_iter().find(|finding| finding.check == check).unwrap().verdict
    }

    #[test]
    fn a_token_is_judged_by_what_became_of_it() {
        let region = |region: &str| Token::SignedIn { region: Some(region.into()) };
        for (token, wanted) in [
            (Token::Accepted, Verdict::Pass),
            (Token::Known, Verdict::Pass),
            (region("eu"), Verdict::Pass),
            (region("us"), Verdict::Warn),
            (Token::Refused("401".into()), Verdict::Fail),
            (Token::Unclear("403".into()), Verdict::Warn),
            (Token::Failed("502".into()), Verdict::Fail),
            (Token::NotTried, Verdict::Skip),
        ] {
            let facts = facts(Some(token.clone()), Some(token.clone()));
            assert_eq!(verdict_of("V1 token", &facts), wanted, "{token:?}");
            assert_eq!(verdict_of("V2 token", &facts), wanted, "{token:?}");
        }
    }

    #[test]
    fn a_protocol_without_a_token_has_no_line() {
        let findings = judge(&facts(None, Some(Token::NotTried)));
        assert!(!findings.iter().any(|finding| finding.check.starts_with("V1")), "{findings:?}");
    }

    #[test]
    fn models_that_failed_too_often_are_named() {
        let model = v1::Model {
            name: "debian12".into(),
            model_type: HATCHERY_TYPE.into(),
            nb_spawn_err: 6,
            last_spawn_err: Some("no template".into()),
            ..v1::Model::default()
        };
        let finding = models(&Fact::Known(vec![model]));
        assert_eq!(
            (finding.verdict, &*finding.details),
            (Verdict::Warn, &["debian12: no template".to_owned()][..])
        );
    }
}
