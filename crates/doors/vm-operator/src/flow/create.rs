//! Create: everything that is needed is looked at, a place is chosen, and one request is sent.

use kube::ResourceExt as _;
use roost_controller::{Draft, Next};

use super::Context;
use super::defaults::default_object;
use super::fast_deploy::get_source_paths;
use super::outcome::{Flow, Halt};
use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, Reason, mark_false, mark_true, remove};
use crate::api::names::{annotation, label};
use crate::class::sized_by;
use crate::front_door::trail::Chart::Create;
use crate::front_door::trail::at;
use crate::planted::{self, Bug};
use crate::provider::{Missing, Prereqs, WantedNic, class_reference, look_at_prereqs};

pub(crate) async fn create_virtual_machine(
    cx: &Context,
    vm: &mut Draft<VirtualMachine>,
) -> Flow<Next> {
    at(Create, "prerequisites");
    resolve_image(cx, vm);
    let key = roost_controller::Key::of(&**vm);
    cx.provider.steps.may_begin(&key, super::Done::CreateStarted, cx.now())?;
    if planted::is(Bug::ForgetsIdentity) {
        vm.spec.instance_uuid = format!("{:032x}", cx.now().as_nanosecond());
    }
    let prereqs = prerequisites(cx, vm)?;
    at(Create, "network");
    let nics = network(cx, vm, &prereqs).await?;
    let cdroms = cx.provider.cdroms(cx, vm).await?;
    at(Create, "create slot");
    let reservation = cx.provider.check_concurrency(vm)?;
    at(Create, "placement");
    let place = placement(cx, vm, &prereqs).await?;
    at(Create, "image cache");
    let cached = get_source_paths(cx, vm, &prereqs, &place).await?;
    at(Create, "create arguments");
    let provider = &cx.provider;
    let args = provider.create_args(vm, &prereqs, &nics, &cdroms, &place, cached.as_ref()).await?;
    note_class(vm, &prereqs);
    note_zone(vm, &place.zone);
    cx.provider.check_not_there(vm).await?;
    at(Create, "create");
    cx.provider.start_create(args, reservation).await?;
    Ok(Next::AwaitChange)
}

/// An image that was not there when the object was filled in may have come since.
fn resolve_image(cx: &Context, vm: &mut VirtualMachine) {
    if vm.spec.image.is_none() && !vm.spec.image_name.is_empty() {
        default_object(cx, vm);
    }
}

/// All are looked at, so that a person sees all that is missing.
fn prerequisites(cx: &Context, vm: &mut VirtualMachine) -> Flow<Prereqs> {
    let looked = look_at_prereqs(vm, &cx.stores, &cx.provider.settings, cx.now());
    // What is missing is watched, so its coming brings the key back; the requeue is for what nobody watches.
    looked.map_err(|Missing(_)| Halt::Requeue(cx.settings.create_requeue))
}

async fn network(cx: &Context, vm: &mut VirtualMachine, prereqs: &Prereqs) -> Flow<Vec<WantedNic>> {
    let kind = ConditionType::NetworkReady;
    let nics = cx.provider.nics(vm, &prereqs.base).await;
    let conditions = &mut vm.status_mut().conditions;
    match nics {
        Ok(None) => {
            remove(conditions, kind);
            Ok(Vec::new())
        }
        Ok(Some(nics)) if nics.is_empty() => {
            remove(conditions, kind);
            Ok(nics)
        }
        Ok(Some(nics)) => {
            mark_true(conditions, kind, cx.now());
            Ok(nics)
        }
        Err(Halt::Failed(failure)) => {
            let why = roost_supervise::Chain(&failure).to_string();
            mark_false(conditions, kind, Reason::NotReady, &why, cx.now());
            Err(Halt::Failed(failure))
        }
        Err(halt) => Err(halt),
    }
}

async fn placement(
    cx: &Context,
    vm: &mut VirtualMachine,
    prereqs: &Prereqs,
) -> Flow<std::sync::Arc<crate::provider::Place>> {
    let kind = ConditionType::PlacementReady;
    let extension_key = &cx.provider.settings.extension_key;
    let image = prereqs.image.as_ref();
    let config = crate::provider::config_of(vm, &prereqs.base, image, extension_key);
    let placed = cx.provider.placement(vm, &config).await;
    let labelled = vm.labels().get(label::ZONE).filter(|zone| !zone.is_empty());
    let zones = cx.provider.places.zones();
    let is_elsewhere = labelled.is_some_and(|zone| zones.iter().all(|known| known.name != *zone));
    let conditions = &mut vm.status_mut().conditions;
    match &placed {
        Ok(_) => {
            mark_true(conditions, kind, cx.now());
        }
        Err(Halt::Failed(failure)) => {
            let why = roost_supervise::Chain(failure).to_string();
            let reason = if is_elsewhere { Reason::ZoneMismatch } else { Reason::Error };
            mark_false(conditions, kind, reason, &why, cx.now());
        }
        Err(_) => {}
    }
    placed
}

/// Where it is made. Set once, it stays there.
fn note_zone(vm: &mut VirtualMachine, zone: &str) {
    vm.labels_mut().entry(label::ZONE.to_owned()).or_insert_with(|| zone.to_owned());
    zone.clone_into(&mut vm.status_mut().zone);
}

/// By which class it was made.
fn note_class(vm: &mut VirtualMachine, prereqs: &Prereqs) {
    let Some(class) = &prereqs.class else { return };
    vm.status_mut().class = Some(class_reference(&class.name_any()));
    let text = sized_by(class);
    vm.annotations_mut().insert(annotation::LAST_RESIZED_VM_CLASS.to_owned(), text);
}
