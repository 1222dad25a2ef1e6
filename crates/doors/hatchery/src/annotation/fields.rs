//! The keys, in the order of CDS's struct, both directions.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Annotation, Doom, GoTime, NotCds};
use crate::process::ProcessMark;

const PROCESS: &str = "roost_process";

pub(super) fn parse(text: &str) -> Result<Annotation, NotCds> {
    let text = text.trim();
    if text.is_empty() {
        return Err(NotCds::Empty);
    }
    let Members(members) = serde_json::from_str(text).map_err(|_| NotCds::NotAnObject)?;
    let mut annotation = Annotation::default();
    let (mut to_delete, mut reason, mut by_person) = (false, String::new(), false);
    for (key, raw) in members {
        let value = raw.get();
        let known = key.to_ascii_lowercase();
        if value == "null" && is_known(&known) {
            continue;
        }
        match known.as_str() {
            "hatchery_name" => annotation.hatchery_name = string("hatchery_name", value)?,
            "worker_name" => annotation.worker_name = string("worker_name", value)?,
            "register_only" => annotation.register_only = boolean("register_only", value)?,
            "provisioning" => annotation.provisioning = boolean("provisioning", value)?,
            "worker_model_path" => {
                annotation.worker_model_path = string("worker_model_path", value)?;
            }
            "vmware_model_path" => {
                annotation.vmware_model_path = string("vmware_model_path", value)?;
            }
            "worker_model_last_modified" => {
                annotation.worker_model_last_modified =
                    string("worker_model_last_modified", value)?;
            }
            "model" => annotation.model = boolean("model", value)?,
            "created" => annotation.created = time("created", value)?,
            "worker_start_time" => annotation.worker_start_time = time("worker_start_time", value)?,
            "job_id" => annotation.job_id = string("job_id", value)?,
            "ip_address" => annotation.ip_address = string("ip_address", value)?,
            "flavor" => annotation.flavor = string("flavor", value)?,
            // CDS's hatcheries of before 2021 wrote the mark too, and ignore it since.
            "to_delete" => to_delete = boolean("to_delete", value)?,
            "to_delete_reason" => reason = string("to_delete_reason", value)?,
            "to_delete_by_person" => by_person = boolean("to_delete_by_person", value)?,
            // What is no mark is nobody's business here, and stays as it is.
            PROCESS if process(value).is_some() => annotation.process = process(value),
            _ => {
                annotation.others.0.retain(|(other, _)| *other != key);
                annotation.others.0.push((key, raw));
            }
        }
    }
    annotation.doomed = to_delete.then_some(Doom { reason, by_person });
    Ok(annotation)
}

fn is_known(key: &str) -> bool {
    matches!(
        key,
        "hatchery_name"
            | "worker_name"
            | "register_only"
            | "provisioning"
            | "worker_model_path"
            | "vmware_model_path"
            | "worker_model_last_modified"
            | "model"
            | "created"
            | "worker_start_time"
            | "job_id"
            | "ip_address"
            | "flavor"
            | "to_delete"
            | "to_delete_reason"
            | "to_delete_by_person"
    )
}

pub(super) fn write(annotation: &Annotation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut object = Object { f, empty: true };
    object.string("hatchery_name", &annotation.hatchery_name)?;
    object.string("worker_name", &annotation.worker_name)?;
    object.boolean("register_only", annotation.register_only)?;
    object.boolean("provisioning", annotation.provisioning)?;
    object.string("worker_model_path", &annotation.worker_model_path)?;
    object.string("vmware_model_path", &annotation.vmware_model_path)?;
    object.string("worker_model_last_modified", &annotation.worker_model_last_modified)?;
    object.boolean("model", annotation.model)?;
    object.member("created", &format!("\"{}\"", annotation.created))?;
    object.member("worker_start_time", &format!("\"{}\"", annotation.worker_start_time))?;
    object.string("job_id", &annotation.job_id)?;
    object.string("ip_address", &annotation.ip_address)?;
    object.string("flavor", &annotation.flavor)?;
    if let Some(process) = &annotation.process {
        object.string(PROCESS, &process.to_string())?;
    }
    if let Some(doom) = &annotation.doomed {
        object.boolean("to_delete", true)?;
        object.string("to_delete_reason", &doom.reason)?;
        object.boolean("to_delete_by_person", doom.by_person)?;
    }
    for (key, raw) in &annotation.others.0 {
        object.member(key, raw.get())?;
    }
    object.f.write_str(if object.empty { "{}" } else { "}" })
}

/// An object being written, without keys whose value is empty.
struct Object<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    empty: bool,
}

impl Object<'_, '_> {
    fn member(&mut self, key: &str, json: &str) -> fmt::Result {
        let before = if self.empty { "{" } else { "," };
        self.empty = false;
        write!(self.f, "{before}{}:{json}", quote(key))
    }

    fn string(&mut self, key: &str, value: &str) -> fmt::Result {
        if value.is_empty() { Ok(()) } else { self.member(key, &quote(value)) }
    }

    fn boolean(&mut self, key: &str, value: bool) -> fmt::Result {
        if value { self.member(key, "true") } else { Ok(()) }
    }
}

/// A JSON string as Go writes it.
fn quote(text: &str) -> String {
    String::from_utf8_lossy(&roost_cds::json::encode(text)).into_owned()
}

fn string(key: &'static str, json: &str) -> Result<String, NotCds> {
    serde_json::from_str(json).map_err(|_| NotCds::WrongType { key, expected: "text" })
}

fn boolean(key: &'static str, json: &str) -> Result<bool, NotCds> {
    serde_json::from_str(json).map_err(|_| NotCds::WrongType { key, expected: "true or false" })
}

fn time(key: &'static str, json: &str) -> Result<GoTime, NotCds> {
    let text = string(key, json)?;
    GoTime::parse(&text).ok_or(NotCds::WrongType { key, expected: "an RFC 3339 time" })
}

fn process(json: &str) -> Option<ProcessMark> {
    serde_json::from_str::<String>(json).ok()?.parse().ok()
}

/// The members of an object in the order of the text.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
