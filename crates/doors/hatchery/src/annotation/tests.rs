use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// As CDS before 0.57 wrote it on a fresh clone.
const U1_WORKER: &str = r#"{"hatchery_name":"h1","worker_name":"keen-bohr","worker_model_path":"shared.infra/debian12","vmware_model_path":"debian12","worker_model_last_modified":"1780272000","created":"2026-03-02T11:22:33.123456789+01:00","job_id":"123","ip_address":"10.0.0.7"}"#;
/// As CDS 0.57 writes it on a spare and on the worker that it becomes.
const U2_SPARE: &str = r#"{"hatchery_name":"h1","worker_name":"provision-v2-ip-10-0-0-7-keen-bohr","provisioning":true,"vmware_model_path":"debian12","created":"2026-06-23T08:00:00.5Z","worker_start_time":"0001-01-01T00:00:00Z","ip_address":"10.0.0.7"}"#;
const U2_WORKER: &str = r#"{"hatchery_name":"h1","worker_name":"happy-hopper","vmware_model_path":"debian12","created":"2026-06-23T08:00:00.5Z","worker_start_time":"2026-06-23T09:00:00.25Z","job_id":"0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e4","ip_address":"10.0.0.7"}"#;

#[test]
fn annotations_of_cds_0_57_are_written_back_byte_for_byte() {
    for text in [U2_SPARE, U2_WORKER] {
        assert_eq!(Annotation::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn annotations_of_earlier_versions_are_read_and_only_gain_a_start_time_of_never() {
    let worker = Annotation::parse(U1_WORKER).unwrap();
    assert_eq!(worker.job(), Some(JobId::V1(123)));
    assert_eq!(worker.address(), Some("10.0.0.7".parse().unwrap()));
    assert_eq!(worker.created.get(), Some(at("2026-03-02T10:22:33.123456789Z")));
    assert_eq!(worker.worker_start_time, GoTime::NEVER);
    let wanted = U1_WORKER
        .replace(r#"","job_id""#, r#"","worker_start_time":"0001-01-01T00:00:00Z","job_id""#);
    assert_eq!(worker.to_string(), wanted);
}

#[test]
fn d18_a_claim_rewrites_what_cds_0_57_rewrites() {
    let spare = Annotation::parse(U2_SPARE).unwrap();
    let job = JobId::parse("0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e4").unwrap();
    let worker = spare.claimed("h1", "happy-hopper", &job, at("2026-06-23T09:00:00.25Z"));
    assert_eq!(worker.to_string(), U2_WORKER);
}

#[test]
fn keys_of_others_survive_a_rewrite_as_they_were() {
    let text = r#"{"hatchery_name":"h1","zeta":1.50,"alpha":{"b":[1, null],"a":"<&>"}}"#;
    let mut annotation = Annotation::parse(text).unwrap();
    annotation.job_id = "7".into();
    assert_eq!(
        annotation.to_string(),
        concat!(
            r#"{"hatchery_name":"h1","created":"0001-01-01T00:00:00Z","#,
            r#""worker_start_time":"0001-01-01T00:00:00Z","job_id":"7","#,
            r#""zeta":1.50,"alpha":{"b":[1, null],"a":"<&>"}}"#
        )
    );
}

#[test]
fn any_object_is_an_annotation_and_anything_else_is_not() {
    let nobody = Annotation::parse("{}").unwrap();
    assert!(!nobody.is_of("") && !nobody.is_of("h1"), "{{}} belongs to nobody");
    for (text, why) in [
        ("", NotCds::Empty),
        (" \n", NotCds::Empty),
        ("made by hand", NotCds::NotAnObject),
        ("[]", NotCds::NotAnObject),
        ("null", NotCds::NotAnObject),
        ("{\"hatchery_name\":\"h1\"", NotCds::NotAnObject),
        (r#"{"hatchery_name":1}"#, NotCds::WrongType { key: "hatchery_name", expected: "text" }),
        (r#"{"model":"yes"}"#, NotCds::WrongType { key: "model", expected: "true or false" }),
        (
            r#"{"created":"soon"}"#,
            NotCds::WrongType { key: "created", expected: "an RFC 3339 time" },
        ),
    ] {
        assert_eq!(Annotation::parse(text).unwrap_err(), why, "{text:?}");
    }
}

#[test]
fn go_matches_names_in_any_case_and_takes_null_for_absent() {
    let text = r#"{"Hatchery_Name":"h1","PROVISIONING":null,"created":null,"other":null}"#;
    let annotation = Annotation::parse(text).unwrap();
    assert!(annotation.is_of("h1") && !annotation.is_of("H1"));
    assert!(annotation.to_string().ends_with(r#""other":null}"#));
}

#[test]
fn a_registration_has_no_job() {
    let text = r#"{"hatchery_name":"h1","register_only":true,"job_id":"0"}"#;
    assert_eq!(Annotation::parse(text).unwrap().job(), None);
}

#[test]
fn a_persons_mark_replaces_ours_and_says_so() {
    let mut worker = Annotation::default();
    worker.doom("a reason of ours");
    worker.doom(Doom::asked_for("jane asked for it"));
    worker.doom("a later reason of ours");
    let read = Annotation::parse(&worker.to_string()).unwrap();
    assert_eq!(read.doomed, Some(Doom::asked_for("jane asked for it")));
    assert!(worker.to_string().contains(r#""to_delete_by_person":true"#));
}

#[test]
fn w7_a_mark_for_deletion_outlives_the_process_and_ends_a_spare() {
    let mut spare = Annotation::parse(U2_SPARE).unwrap();
    spare.doom("no address after 3 minutes");
    spare.doom("a later reason");
    let read = Annotation::parse(&spare.to_string()).unwrap();
    assert_eq!(read.doomed, Some("no address after 3 minutes".into()));
    assert!(!read.provisioning, "a hatchery of CDS that comes back does not claim it");
    assert!(read.to_string().contains(r#""to_delete":true,"to_delete_reason":"no address"#));
}

#[test]
fn amendment_c_the_flavor_of_a_spare_is_kept() {
    let text = r#"{"hatchery_name":"h1","provisioning":true,"flavor":"large"}"#;
    let spare = Annotation::parse(text).unwrap();
    assert_eq!(spare.flavor, "large");
    assert!(spare.to_string().ends_with(r#""flavor":"large"}"#));
}

#[test]
fn text_is_escaped_as_go_does() {
    let annotation = Annotation { hatchery_name: "a<b>&\"c\"".into(), ..Annotation::default() };
    assert!(annotation.to_string().starts_with(r#"{"hatchery_name":"a\u003cb\u003e\u0026\"c\"","#));
    assert_eq!(Annotation::parse(&annotation.to_string()).unwrap(), annotation);
}

proptest::proptest! {
    #[test]
    fn what_is_written_is_read_back(name in ".*", job in "[0-9]{0,9}", spare: bool, seconds in 0_i64..4_000_000_000) {
        let annotation = Annotation {
            hatchery_name: name,
            provisioning: spare,
            job_id: job,
            created: Timestamp::from_second(seconds).unwrap().into(),
            ..Annotation::default()
        };
        proptest::prop_assert_eq!(Annotation::parse(&annotation.to_string()).unwrap(), annotation);
    }

    #[test]
    fn no_text_breaks_the_reader(text in ".*") {
        let _ = Annotation::parse(&text);
    }
}
