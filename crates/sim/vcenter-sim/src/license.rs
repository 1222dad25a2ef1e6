//! Licenses: an evaluation that is always there, keys that were added, and who was given which.

use std::collections::BTreeMap;

use roost_vim_wire::types::AboutInfo;
use roost_vim_wire::{Array, Element, MoRef, Request, Value};

use crate::call::{CallContext, CallResult, Failure};
use crate::inventory::Record;
use crate::model::calls;
use crate::property::{Found, no_such};
use crate::service::manager;
use crate::world::World;

const EVALUATION: &str = "00000-00000-00000-00000-00000";

#[derive(Debug)]
pub(crate) struct Licenses {
    /// Labels by key.
    keys: BTreeMap<String, BTreeMap<String, String>>,
    /// Display name and key by entity.
    assigned: BTreeMap<String, (String, String)>,
}

impl Default for Licenses {
    fn default() -> Self {
        let keys = BTreeMap::from([(EVALUATION.to_owned(), BTreeMap::new())]);
        Self { keys, assigned: BTreeMap::new() }
    }
}

/// A value of any type, which says what it is.
fn property_of(key: &str, value: &str) -> Value {
    let pair = Element::new("properties").typed("KeyAnyValue").with_field("key", &key.to_owned());
    Value::Other(Box::new(pair.with_field("value", &Value::string(value))))
}

fn info(about: &AboutInfo, key: &str, labels: Option<&BTreeMap<String, String>>) -> Record {
    let of = |name: &'static str, value: &Option<String>| {
        property_of(name, value.as_deref().unwrap_or_default())
    };
    let is_evaluation = key == EVALUATION;
    let mut properties = vec![
        of("ProductName", &about.license_product_name),
        of("ProductVersion", &about.license_product_version),
    ];
    if !is_evaluation {
        properties.push(property_of("diagnostic", "License is not valid for this product"));
    }
    let labels = labels.into_iter().flatten();
    let labels =
        labels.map(|(key, value)| Record::of("KeyValue").text("key", key).text("value", value));
    Record::of("LicenseManagerLicenseInfo")
        .text("licenseKey", key)
        .text("editionKey", if is_evaluation { "eval" } else { "" })
        .text("name", if is_evaluation { "Evaluation Mode" } else { "" })
        .set("total", &0)
        .text("costUnit", "")
        .put("properties", Value::Array(Array::new("KeyAnyValue", properties)))
        .records("labels", "KeyValue", labels.collect())
}

impl Licenses {
    fn shown(&self, about: &AboutInfo, key: &str) -> Record {
        info(about, key, self.keys.get(key))
    }

    fn labels(&mut self, key: &str) -> Result<&mut BTreeMap<String, String>, Failure> {
        self.keys.get_mut(key).ok_or_else(|| Failure::invalid_argument("licenseKey"))
    }
}

pub(crate) fn property(world: &World, path: &str) -> Found {
    let about = &world.service.about;
    let value = match path {
        "licenses" => {
            let all = world.licenses.keys.keys();
            let all = all.map(|key| world.licenses.shown(about, key).value()).collect();
            Value::Array(Array::new("LicenseManagerLicenseInfo", all))
        }
        "licensedEdition" => Value::string("eval"),
        "evaluation" => {
            let own = world.licenses.shown(about, EVALUATION);
            let properties = roost_vim_wire::DataObject::get(&own, "properties");
            let info = Record::of("LicenseManagerEvaluationInfo");
            properties.into_iter().fold(info, |info, all| info.put("properties", all)).value()
        }
        "licenseAssignmentManager" if world.product == crate::options::Product::VirtualCenter => {
            Value::Ref(manager(world.product, "LicenseAssignmentManager"))
        }
        "licenseAssignmentManager"
        | "source"
        | "sourceAvailable"
        | "diagnostics"
        | "featureInfo" => return Ok(None),
        _ => return no_such(path),
    };
    Ok(Some(value))
}

pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    _: &CallContext<'_>,
) -> Option<CallResult> {
    let about = world.service.about.clone();
    let licenses = &mut world.licenses;
    let element = |record: Record| record.element("returnval").unwrap_or_default();
    calls! { request;
        AddLicense => |asked| {
            licenses.keys.insert(asked.license_key.clone(), labels(&asked.labels));
            Ok(element(licenses.shown(&about, &asked.license_key)))
        },
        UpdateLicense => |asked| {
            if !asked.labels.is_empty() {
                *licenses.labels(&asked.license_key)? = labels(&asked.labels);
            }
            Ok(element(licenses.shown(&about, &asked.license_key)))
        },
        RemoveLicense => |asked| {
            if asked.license_key != EVALUATION {
                licenses.keys.remove(&asked.license_key);
            }
            Ok(())
        },
        DecodeLicense => |asked| Ok(element(licenses.shown(&about, &asked.license_key))),
        UpdateLicenseLabel => |asked| {
            let labels = licenses.labels(&asked.license_key)?;
            if asked.label_value.is_empty() {
                labels.remove(&asked.label_key);
            } else {
                labels.insert(asked.label_key, asked.label_value);
            }
            Ok(())
        },
        RemoveLicenseLabel => |asked| {
            licenses.labels(&asked.license_key)?.remove(&asked.label_key);
            Ok(())
        },
        QueryAssignedLicenses => |asked| {
            let wanted = asked.entity_id.filter(|id| !id.is_empty());
            let fits = |id: &str| wanted.as_ref().is_none_or(|wanted| wanted == id);
            let all = licenses.assigned.iter().filter(|(id, _)| fits(id));
            Ok(all.map(|(id, (name, key))| {
                element(Record::of("LicenseAssignmentManagerLicenseAssignment")
                    .text("entityId", id)
                    .text("entityDisplayName", name)
                    .record("assignedLicense", licenses.shown(&about, key)))
            }).collect())
        },
        UpdateAssignedLicense => |asked| {
            let name = asked.entity_display_name.unwrap_or_default();
            licenses.labels(&asked.license_key)?;
            licenses.assigned.insert(asked.entity, (name, asked.license_key.clone()));
            Ok(element(licenses.shown(&about, &asked.license_key)))
        },
        RemoveAssignedLicense => |asked| {
            licenses.assigned.remove(&asked.entity_id);
            Ok(())
        },
    }
}

fn labels(given: &[Element]) -> BTreeMap<String, String> {
    let text = |pair: &Element, name: &str| pair.text_of(name).unwrap_or_default().to_owned();
    given.iter().map(|pair| (text(pair, "key"), text(pair, "value"))).collect()
}
