use roost_vim_wire::types::{
    PbmPlacementCompatibilityResult, PbmPlacementHub, PbmProfileId, PbmServerObjectRef,
};
use roost_vim_wire::{Element, Method, MoRef, MoType, Request, methods};

use super::profile::Profile;
use super::{Policies, obstacle, unknown};
use crate::call::{CallContext, CallResult, Failure, ReplyBody};
use crate::model::calls;
use crate::service::manager;
use crate::world::World;

/// The methods of the storage policy service.
pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    let answered = calls! { request;
        PbmRetrieveServiceContent => |_| Ok(content(world)),
        PbmQueryProfile => |call| {
            let category = call.profile_category.unwrap_or_default();
            let is_wanted = category.is_empty() || category == "REQUIREMENT";
            Ok(world.policies.profiles.iter().filter(|_| is_wanted).map(id_of).collect())
        },
        PbmQueryProfileDetails => |_| {
            let all = world.policies.profiles.iter();
            Ok(all.map(|profile| Element::new("returnval").with(profile.element("profile"))).collect())
        },
        PbmRetrieveContent => |call| {
            let found = call.profile_ids.iter().map(|id| {
                let profile = world.policies.get(&id.unique_id);
                profile.map(|profile| profile.element("returnval")).ok_or_else(|| unknown(&id.unique_id))
            });
            found.collect()
        },
        PbmCreate => |call| create(world, cx, &call.create_spec),
        PbmUpdate => |call| update(&mut world.policies, cx, &call.profile_id, &call.update_spec),
        PbmDelete => |call| Ok(delete(&mut world.policies, &call.profile_id)),
        PbmQueryAssociatedProfile => |call| Ok(associated(&world.policies, &call.entity)),
        PbmQueryAssociatedProfiles => |call| {
            let one = |entity: &PbmServerObjectRef| {
                Element::new("returnval")
                    .with_field("object", entity)
                    .with_field("profileId", &associated(&world.policies, entity))
            };
            Ok(call.entities.iter().map(one).collect())
        },
        PbmQueryAssociatedEntity => |call| {
            let all = world.policies.associations.iter();
            let own = all.filter(|(_, id)| **id == call.profile.unique_id).map(|(key, _)| entity(key));
            let is_wanted = |found: &PbmServerObjectRef| {
                call.entity_type.as_deref().is_none_or(|kind| kind.is_empty() || kind == found.object_type)
            };
            Ok(own.filter(is_wanted).collect())
        },
        PbmQueryDefaultRequirementProfile => |_| Ok(None),
        PbmQueryIOFiltersFromProfileId => |call| {
            let one = |id: &PbmProfileId| {
                let profile = world.policies.get(&id.unique_id).ok_or_else(|| unknown(&id.unique_id))?;
                let mut row = Element::new("returnval").with_field("key", id);
                if profile.encrypts {
                    let filter = Element::new("iofilters")
                        .with_field("vibId", &"vmwarevmcrypt".to_owned())
                        .with_field("filterType", &"ENCRYPTION".to_owned());
                    row = row.with(filter);
                }
                Ok(row)
            };
            call.profile_ids.iter().map(one).collect()
        },
        PbmFetchCapabilityMetadata => |_| Ok(Vec::new()),
        PbmResolveK8sCompliantNames => |_| Ok(()),
        PbmFetchComplianceResult => |call| Ok(compliance(world, cx, &call.entities)),
        PbmCheckCompliance => |call| Ok(compliance(world, cx, &call.entities)),
        PbmCheckRequirements => |call| {
            let wanted = call.placement_subject_requirement.iter();
            let profiles = wanted.map(|requirement| requirement_profile(world, cx, requirement));
            let profiles: Vec<Profile> = profiles.collect::<Result<_, _>>()?;
            Ok(check(world, &call.hubs_to_search, &profiles))
        },
        PbmCheckCompatibility => |call| {
            let profile = world.policies.get(&call.profile.unique_id).cloned();
            let profile = profile.ok_or_else(|| unknown(&call.profile.unique_id))?;
            Ok(check(world, &call.hubs_to_search, &[profile]))
        },
        PbmQueryMatchingHub => |call| {
            let profile = world.policies.get(&call.profile.unique_id).cloned();
            let profile = profile.ok_or_else(|| unknown(&call.profile.unique_id))?;
            let checked = check(world, &call.hubs_to_search, &[profile]);
            Ok(checked.into_iter().filter(|result| result.error.is_empty()).map(|result| result.hub).collect())
        },
    };
    // It belongs to a namespace of its own, which clients insist on.
    if request.method != <methods::PbmQueryIOFiltersFromProfileId as Method>::NAME {
        return answered;
    }
    answered.map(|result| {
        result.map(|body| {
            let text = String::from_utf8_lossy(&body.0);
            ReplyBody(text.replacen("\"urn:pbm\"", "\"urn:internalpbm\"", 1).into_bytes())
        })
    })
}

fn content(world: &World) -> Element {
    let at = |kind: &str| manager(world.product, kind);
    let about = Element::new("aboutInfo")
        .with_field("name", &"PBM".to_owned())
        .with_field("version", &"2.0".to_owned())
        .with_field("instanceUuid", &world.service.about.instance_uuid.clone().unwrap_or_default());
    Element::new("returnval")
        .with(about)
        .with_field("sessionManager", &at("PbmSessionManager"))
        .with_field("capabilityMetadataManager", &at("PbmCapabilityMetadataManager"))
        .with_field("profileManager", &at("PbmProfileProfileManager"))
        .with_field("complianceManager", &at("PbmComplianceManager"))
        .with_field("placementSolver", &at("PbmPlacementSolver"))
        .with_field("replicationManager", &at("PbmReplicationManager"))
}

fn id_of(profile: &Profile) -> PbmProfileId {
    PbmProfileId { unique_id: profile.id.clone() }
}

fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    spec: &Element,
) -> Result<PbmProfileId, Failure> {
    let name = spec.text_of("name").unwrap_or_default();
    if name.is_empty() {
        return Err(Failure::invalid_argument("createSpec.name"));
    }
    let policies = &mut world.policies;
    if policies.profiles.iter().any(|profile| profile.name == name) {
        let words = format!("A storage policy with the name '{name}' exists already.");
        return Err(Failure::of("PbmDuplicateName", words).with("name", &name.to_owned()));
    }
    let constraints =
        spec.child("constraints").cloned().unwrap_or_else(|| Element::new("constraints"));
    let id = policies.random.uuid();
    let description = spec.text_of("description").unwrap_or_default().to_owned();
    let profile = Profile { description, ..Profile::new(id, name, constraints, cx.now, cx.user) };
    let id = id_of(&profile);
    policies.profiles.push(profile);
    Ok(id)
}

fn update(
    policies: &mut Policies,
    cx: &CallContext<'_>,
    id: &PbmProfileId,
    spec: &Element,
) -> Result<(), Failure> {
    let found = policies.profiles.iter_mut().find(|profile| profile.id == id.unique_id);
    let old = found.ok_or_else(|| unknown(&id.unique_id))?;
    let name = spec.text_of("name").filter(|name| !name.is_empty()).unwrap_or(&old.name).to_owned();
    let constraints = spec.child("constraints").cloned().unwrap_or_else(|| old.constraints.clone());
    let description = spec.text_of("description").unwrap_or(&old.description).to_owned();
    let new = Profile::new(old.id.clone(), &name, constraints, old.created, &old.user);
    *old = Profile { description, updated: cx.now, is_default: old.is_default, ..new };
    Ok(())
}

/// What could not be deleted comes back with the reason.
fn delete(policies: &mut Policies, ids: &[PbmProfileId]) -> Vec<Element> {
    let mut outcomes = Vec::new();
    for id in ids {
        let is_used = policies.associations.values().any(|used| *used == id.unique_id);
        let failure = if !policies.contains(&id.unique_id) {
            Some(unknown(&id.unique_id))
        } else if is_used {
            Some(Failure::of("PbmResourceInUse", "The storage policy is in use."))
        } else {
            policies.profiles.retain(|profile| profile.id != id.unique_id);
            None
        };
        let outcome = Element::new("returnval").with_field("profileId", id);
        if let Some(failure) = failure {
            outcomes.push(outcome.with_field("fault", &failure.localized()));
        }
    }
    outcomes
}

fn entity(key: &str) -> PbmServerObjectRef {
    let kind = if key.contains(':') { "virtualDiskId" } else { "virtualMachine" };
    PbmServerObjectRef { object_type: kind.into(), key: key.into(), server_uuid: None }
}

/// The profiles of a VM's home, of one disk, or of a VM with all of its disks.
fn associated(policies: &Policies, entity: &PbmServerObjectRef) -> Vec<PbmProfileId> {
    let with_disks = entity.object_type == "virtualMachineAndDisks";
    let of_disk = format!("{}:", entity.key);
    let own = policies
        .associations
        .iter()
        .filter(|(key, _)| **key == entity.key || with_disks && key.starts_with(&of_disk));
    let mut ids: Vec<PbmProfileId> = Vec::new();
    for (_, id) in own {
        let id = PbmProfileId { unique_id: id.clone() };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// A VM complies while the datastore of its home is one that its policy allows.
fn compliance(
    world: &World,
    cx: &CallContext<'_>,
    entities: &[PbmServerObjectRef],
) -> Vec<Element> {
    let one = |entity: &PbmServerObjectRef| {
        let id = world.policies.associations.get(&entity.key)?;
        let profile = world.policies.get(id)?;
        let vm = MoRef::vm(entity.key.split(':').next().unwrap_or_default());
        let home = &world.inventory.vms.get(&vm)?.home.datastore;
        let is_allowed = obstacle(world, profile, home).is_none();
        let status = if is_allowed { "compliant" } else { "nonCompliant" };
        Some(
            Element::new("returnval")
                .with_field("checkTime", &cx.now)
                .with_field("entity", entity)
                .with_field("profile", &PbmProfileId { unique_id: id.clone() })
                .with_field("complianceTaskStatus", &"success".to_owned())
                .with_field("complianceStatus", &status.to_owned())
                .with_field("mismatch", &false),
        )
    };
    entities.iter().filter_map(one).collect()
}

/// A requirement is a profile by its id, or the constraints of one that nobody has made yet.
fn requirement_profile(
    world: &World,
    cx: &CallContext<'_>,
    requirement: &Element,
) -> Result<Profile, Failure> {
    if let Some(id) = requirement.child("profileId").and_then(|id| id.text_of("uniqueId")) {
        return world.policies.get(id).cloned().ok_or_else(|| unknown(id));
    }
    let constraints = requirement
        .child("constraints")
        .or_else(|| requirement.child("profile")?.child("constraints"))
        .cloned()
        .unwrap_or_else(|| Element::new("constraints"));
    Ok(Profile::new(String::new(), "", constraints, cx.now, cx.user))
}

/// Each hub, or each datastore where none is named, with what stands against it.
fn check(
    world: &World,
    hubs: &[PbmPlacementHub],
    profiles: &[Profile],
) -> Vec<PbmPlacementCompatibilityResult> {
    let all: Vec<MoRef> = if hubs.is_empty() {
        world.inventory.datastores.refs().cloned().collect()
    } else {
        let named = hubs.iter().filter(|hub| hub.hub_type == "Datastore");
        named.map(|hub| MoRef::new(MoType::Datastore, hub.hub_id.as_str())).collect()
    };
    let one = |datastore: MoRef| {
        let reasons = profiles.iter().filter_map(|profile| obstacle(world, profile, &datastore));
        let faults =
            reasons.map(|words| Failure::of("PbmCapabilityProfilePropertyMismatchFault", words));
        PbmPlacementCompatibilityResult {
            hub: PbmPlacementHub { hub_type: "Datastore".into(), hub_id: datastore.id.to_string() },
            error: faults.map(Failure::localized).collect(),
            ..PbmPlacementCompatibilityResult::default()
        }
    };
    all.into_iter().map(one).collect()
}
