//! V1 models get their templates and show what they can do (4.1, 4.2, 7.6, D16, D41, W29).

use std::sync::Arc;

use roost_cds::JobStatus;
use roost_cds::v1::{Model, ModelPath};
use roost_cds_sim::{Fault, V1Demand};
use roost_clock::Clock;
use roost_fleet::{Decided, Decision};
use roost_hatchery::door::HATCHERY;
use roost_hatchery::run::view::VmKind;
use roost_vcenter_sim::{Action, GuestRun, Power, Rule};
use tokio::time::{sleep, timeout};

use crate::lab::{
    Conduct, CrashAt, Lab, Service, Setup, Start, World, WorldOptions, mins, secs, wait_until,
};

fn is_registered(world: &World, path: &ModelPath) -> bool {
    world.cds.model(path).is_some_and(|model| !model.need_registration)
}

async fn wait_registered(world: &World, path: &ModelPath) {
    wait_until(&format!("{path} is registered"), mins(120), || is_registered(world, path)).await;
}

/// Templates of this name, and what is left of builds and registrations.
fn templates(world: &World, name: &str) -> usize {
    world.vcenter.glance().iter().filter(|vm| vm.template && *vm.name == *name).count()
}

fn leftovers(world: &World) -> Vec<String> {
    let names = world.vcenter.glance().into_iter().map(|vm| vm.name.to_string());
    names.filter(|name| name.ends_with("-tmp") || name.starts_with("register-")).collect()
}

fn errors(world: &World, path: &ModelPath) -> (i64, String) {
    let model: Model = world.cds.model(path).unwrap();
    (model.nb_spawn_err, model.last_spawn_err.unwrap_or_default())
}

fn verdict(lab: &Lab, path: &ModelPath) -> Arc<Decision> {
    let subject = HATCHERY.about_pool(format!("model {path}"));
    lab.hatchery().journal().latest(&subject).expect("it was decided about")
}

/// D16.
#[tokio::test(start_paused = true)]
async fn a_new_model_gets_its_template_and_serves_jobs() {
    let lab = Lab::new().await;
    let path = lab.v1_model("builder");
    let job = lab.v1_job(V1Demand::new().model("builder"));
    lab.wait_for(&job, JobStatus::Success).await;
    assert!(is_registered(&lab, &path));
    assert_eq!((templates(&lab, "builder"), errors(&lab, &path).0), (1, 0));
    let vm = lab.vcenter.vm("builder").unwrap();
    let annotation = vm.annotation.unwrap();
    assert!(annotation.contains(r#""model":true"#) && annotation.contains("shared.infra/builder"));
    wait_until("nothing is left", mins(60), || leftovers(&lab).is_empty()).await;
    lab.wait_until_clean(0).await;
    assert!(lab.vcenter.vm("debian12").is_some(), "the image is nobody's to delete");
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_seen_while_it_lasts() {
    let lab = Lab::new().await;
    lab.v1_model("builder");
    let window = lab.hatchery().window();
    let kinds = || window.vms().into_iter().map(|vm| vm.kind).collect::<Vec<_>>();
    wait_until("it is built", mins(10), || kinds() == [VmKind::Building]).await;
    let capacity = window.overview().capacity;
    assert_eq!(capacity.registering.used + capacity.registering.reserved, 1);
    wait_until("it registers", mins(20), || kinds().contains(&VmKind::Registering)).await;
    assert!(kinds().contains(&VmKind::Template));
}

/// Changing a model changes what its workers are made of; meanwhile no job runs on what it was.
#[tokio::test(start_paused = true)]
async fn a_changed_model_is_built_anew_and_the_template_before_it_goes() {
    let lab = Lab::new().await;
    let path = lab.v1_model("builder");
    wait_registered(&lab, &path).await;
    let before = lab.vm_named("builder").unwrap().moref;
    lab.cds.change_model(&path, |model| {
        model.need_registration = true;
        model.user_last_modified = Some(lab.clock.now());
    });
    wait_until("another template is there", mins(60), || {
        lab.vm_named("builder").is_some_and(|vm| vm.moref != before && vm.template)
    })
    .await;
    wait_registered(&lab, &path).await;
    assert_eq!(templates(&lab, "builder"), 1);
    assert!(lab.vcenter.glance().iter().all(|vm| vm.moref != before));
}

/// W29: asking for a check registers the model again, with the template that it has.
#[tokio::test(start_paused = true)]
async fn a_check_registers_again_without_building() {
    let lab = Lab::new().await;
    let path = lab.v1_model("builder");
    wait_registered(&lab, &path).await;
    wait_until("nothing is left", mins(60), || leftovers(&lab).is_empty()).await;
    let (before, launches) = (lab.vm_named("builder").unwrap().moref, lab.guests.launches().len());
    lab.cds.change_model(&path, |model| model.check_registration = true);
    wait_until("a worker registers", mins(20), || lab.guests.launches().len() > launches).await;
    assert_eq!(lab.vm_named("builder").unwrap().moref, before);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_register_is_reported_and_its_vm_goes() {
    let lab = Lab::new().await;
    lab.guests.conduct(|_| Conduct::GoesDown);
    let path = lab.v1_model("builder");
    wait_until("it is reported", mins(60), || errors(&lab, &path).0 >= 1).await;
    assert!(
        errors(&lab, &path).1.contains("without having registered"),
        "{:?}",
        errors(&lab, &path)
    );
    lab.guests.conduct(|_| Conduct::Obedient);
    wait_registered(&lab, &path).await;
    wait_until("nothing is left", mins(60), || leftovers(&lab).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_never_ends_its_build_is_reported_and_leaves_no_template() {
    let lab = Lab::new().await;
    lab.guests.others(|program| {
        program.arguments.contains("shutdown").then(|| GuestRun::exits(0).into())
    });
    let path = lab.v1_model("builder");
    wait_until("it is reported", mins(60), || errors(&lab, &path).0 >= 1).await;
    let (_, words) = errors(&lab, &path);
    assert!(words.contains("post_cmd has not powered the VM off"), "{words}");
    assert_eq!(templates(&lab, "builder"), 0);
    assert_eq!(verdict(&lab, &path).verdict, Decided::Failed);
    lab.guests.others(|_| None);
    wait_registered(&lab, &path).await;
    wait_until("nothing is left", mins(60), || leftovers(&lab).is_empty()).await;
}

/// 4.2: with more errors than that, only its owner can say that it works again.
#[tokio::test(start_paused = true)]
async fn a_model_that_fails_again_and_again_is_left_alone() {
    let lab = Lab::new().await;
    lab.guests.conduct(|_| Conduct::GoesDown);
    let path = lab.v1_model("builder");
    sleep(mins(300)).await;
    assert_eq!(errors(&lab, &path).0, 6);
    assert_eq!(verdict(&lab, &path).bound_by, Some("spawn-errors"));
    let launches = lab.guests.launches().len();
    sleep(mins(60)).await;
    assert_eq!(lab.guests.launches().len(), launches);
}

/// A vCenter that has a bad moment does not take models out of service.
#[tokio::test(start_paused = true)]
async fn a_refused_clone_is_tried_again_and_counts_against_nobody() {
    let lab = Lab::new().await;
    let busy = Action::fault("ResourceInUse", "the datastore is being moved");
    lab.vcenter.faults().add(Rule::new("CloneVM_Task", busy).times(3));
    let path = lab.v1_model("builder");
    wait_registered(&lab, &path).await;
    assert_eq!(errors(&lab, &path).0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_not_ours_is_never_replaced() {
    let lab = Lab::new().await;
    let path = lab.v1_model("ubuntu24");
    sleep(mins(10)).await;
    assert_eq!(verdict(&lab, &path).bound_by, Some("foreign-template"));
    assert!(!is_registered(&lab, &path) && leftovers(&lab).is_empty());
}

/// Two groups may have a model of one name; there is one template of that name.
#[tokio::test(start_paused = true)]
async fn models_of_one_name_do_not_take_the_template_from_each_other() {
    let lab = Lab::new().await;
    let path = lab.v1_model("builder");
    wait_registered(&lab, &path).await;
    let before = lab.vm_named("builder").unwrap().moref;
    let mut model = lab.cds.model(&path).unwrap();
    (model.id, model.need_registration) = (0, true);
    model.group = Some(roost_cds::v1::Group { id: 77, name: "team".into() });
    model.user_last_modified = Some(lab.clock.now());
    let other = lab.cds.add_model(model, Vec::new());
    sleep(mins(30)).await;
    assert_eq!(verdict(&lab, &other).bound_by, Some("foreign-template"));
    assert_eq!(lab.vm_named("builder").unwrap().moref, before);
}

#[tokio::test(start_paused = true)]
async fn without_registering_no_model_is_touched() {
    let lab = Lab::of(Setup::new("hv1").provision("maxConcurrentRegistering", -1)).await;
    let path = lab.v1_model("builder");
    sleep(mins(30)).await;
    assert!(!is_registered(&lab, &path));
    assert_eq!(lab.cds.calls("PUT /worker/model/*/*/book"), 0);
}

/// W29: the limit is the limit.
#[tokio::test(start_paused = true)]
async fn no_more_models_register_at_once_than_the_file_says() {
    let lab = Lab::of(Setup::new("hv1").provision("maxConcurrentRegistering", 1)).await;
    // Also while their workers take their time.
    lab.guests.conduct(|_| Conduct::Slow(mins(3)));
    let paths = ["a", "b", "c"].map(|name| lab.v1_model(&format!("model-{name}")));
    let mut most = 0;
    wait_until("all are registered", mins(180), || {
        let at_it = lab.own_vms().into_iter().filter(|vm| {
            vm.power == Power::On && (vm.name.ends_with("-tmp") || vm.name.starts_with("register-"))
        });
        most = most.max(at_it.count());
        paths.iter().all(|path| is_registered(&lab, path))
    })
    .await;
    assert_eq!(most, 1);
}

#[tokio::test(start_paused = true)]
async fn two_hatcheries_register_a_model_once() {
    let lab = Lab::new().await;
    let mut other = Service::new(Setup::new("hv2"));
    other.open(&lab).await;
    let path = lab.v1_model("builder");
    wait_registered(&lab, &path).await;
    sleep(mins(30)).await;
    assert_eq!((templates(&lab, "builder"), errors(&lab, &path).0), (1, 0));
    assert_eq!(lab.guests.launches().iter().filter(|launch| launch.job.is_none()).count(), 1);
    assert!(leftovers(&lab).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_booking_that_cds_refuses_is_no_failure() {
    let lab = Lab::new().await;
    lab.cds.inject(Fault::on("PUT /worker/model/*/*/book").first(2).answer(403, 115));
    let path = lab.v1_model("builder");
    sleep(secs(30)).await;
    assert_eq!(verdict(&lab, &path).verdict, Decided::Skipped);
    wait_registered(&lab, &path).await;
    assert_eq!(errors(&lab, &path).0, 0);
}

/// Asked for again and again, whatever is going on: to die at one of these is to die between two steps.
const POLLS: [&str; 5] = [
    "GET /queue",
    "GET /worker,",
    "GET /worker/model/enabled",
    "heartbeat",
    "RetrievePropertiesEx",
];

/// Rule 1 of the design: a process that dies at any call loses and doubles nothing.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_call_of_a_registration_leaves_one_template_and_nothing_else() {
    let mut call = 1;
    loop {
        let world = World::start(WorldOptions::seed(call));
        let setup = Setup::new("hv1").only_v1().set("workerRegistrationTTL", 5);
        let mut service = Service::new(setup);
        let path = world.v1_model("builder");
        let crash = CrashAt { call, arrives: call % 2 == 0 };
        let died = match service.start(&world, Some(crash)).await {
            Start::Died(why) => Some(why),
            Start::Refused(error) => panic!("{error}"),
            Start::Runs => {
                let fuse = Arc::clone(service.fuse());
                let registered = async {
                    wait_registered(&world, &path).await;
                    wait_until("nothing is left", mins(60), || leftovers(&world).is_empty()).await;
                };
                tokio::select! {
                    biased;
                    why = fuse.blown() => Some(why),
                    () = registered => None,
                }
            }
        };
        let Some(why) = died else { break };
        call += 1;
        if POLLS.iter().any(|poll| why.contains(poll)) {
            continue;
        }
        service.crash();
        service.open(&world).await;
        let done = timeout(mins(180), async {
            while !is_registered(&world, &path) || !leftovers(&world).is_empty() {
                sleep(secs(5)).await;
            }
        });
        let left = || (is_registered(&world, &path), leftovers(&world), errors(&world, &path));
        assert!(done.await.is_ok(), "after a crash at {why}: {:?}", left());
        assert_eq!(templates(&world, "builder"), 1, "after a crash at {why}");
        assert!(errors(&world, &path).0 <= 1, "after a crash at {why}: {:?}", left());
    }
    assert!(call > 20, "only {call} calls were looked at");
}
