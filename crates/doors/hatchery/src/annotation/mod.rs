//! The JSON in a VM's annotation: whose VM it is, what it is for, and since when.
//!
//! It is the only state that outlives the process, and it is shared with CDS's own hatchery in both of its versions: a VM of theirs is
//! adopted, and a hatchery that is rolled back to theirs reads ours. So the bytes are those that Go's `json.Marshal` writes, in the order of
//! their struct, and keys that only others know survive a rewrite.

mod fields;
mod go_time;
mod recognise;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use roost_cds::JobId;
use serde_json::value::RawValue;

use crate::process::ProcessMark;
pub use go_time::GoTime;
pub use recognise::HatcheryVms;

/// What a VM says about itself. Empty text and `false` are not written; the two times always are.
#[derive(Debug, Clone, Default)]
pub struct Annotation {
    pub hatchery_name: String,
    /// The VM's name as a worker or spare; not on V1 templates.
    pub worker_name: String,
    /// It only registers a V1 model.
    pub register_only: bool,
    /// It is a spare, waiting for a job.
    pub provisioning: bool,
    /// `group/name` of a V1 model; on fresh clones of CDS's own hatchery also the name of a V2 model.
    pub worker_model_path: String,
    /// The template that it was cloned from.
    pub vmware_model_path: String,
    /// V1: when the model was last changed, in Unix seconds as text.
    pub worker_model_last_modified: String,
    /// It is a V1 template, or on the way to become one.
    pub model: bool,
    pub created: GoTime,
    /// When it became the worker of its job. Hatcheries before 0.57 do not write it.
    pub worker_start_time: GoTime,
    /// The job that it serves; `0` for a registration.
    pub job_id: String,
    /// The fixed address that it was given.
    pub ip_address: String,
    /// The flavor that a spare was made with (Amendment C).
    pub flavor: String,
    /// Which process made it, or claimed it last. Ours.
    pub process: Option<ProcessMark>,
    /// Why it is to be deleted, if it is. Ours: CDS's hatchery keeps such marks in memory and loses them.
    pub doomed: Option<Doom>,
    pub others: OtherKeys,
}

/// Keys that nobody here knows, as they were written.
#[derive(Debug, Clone, Default)]
pub struct OtherKeys(Vec<(String, Box<RawValue>)>);

/// A mark for deletion. It outlives a restart and a rename (W7, W14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doom {
    pub reason: String,
    /// A person asked for it. A mark that Roost made by itself does not outweigh what CDS says of the VM's worker.
    pub by_person: bool,
}

impl Doom {
    pub fn asked_for(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), by_person: true }
    }
}

/// By Roost itself.
impl From<&str> for Doom {
    fn from(reason: &str) -> Self {
        Self { reason: reason.to_owned(), by_person: false }
    }
}

/// Why an annotation is not one of a CDS hatchery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCds {
    #[error("the annotation is empty")]
    Empty,
    #[error("the annotation is not a JSON object")]
    NotAnObject,
    #[error("{key} in the annotation is not {expected}")]
    WrongType { key: &'static str, expected: &'static str },
}

impl Annotation {
    /// Reads as CDS does: any JSON object is an annotation, `{}` being one of nobody; names match in any case; null is as good as absent;
    /// a value of the wrong type makes all of it unreadable.
    pub fn parse(text: &str) -> Result<Self, NotCds> {
        fields::parse(text)
    }

    /// Whether the hatchery of this name may change and delete the VM.
    pub fn is_of(&self, hatchery: &str) -> bool {
        !hatchery.is_empty() && self.hatchery_name == hatchery
    }

    /// The job, if there is one: neither the absence of a job nor `0` is.
    pub fn job(&self) -> Option<JobId> {
        JobId::parse(&self.job_id)
    }

    pub fn address(&self) -> Option<IpAddr> {
        self.ip_address.trim().parse().ok()
    }

    /// Marks the VM for deletion. It stops being a spare with that, so that nobody claims it, a hatchery of CDS included; the first reason
    /// stays, unless a person asks as well.
    pub fn doom(&mut self, doom: impl Into<Doom>) {
        self.provisioning = false;
        let doom = doom.into();
        if !self.is_doomed_as(&doom) {
            self.doomed = Some(doom);
        }
    }

    /// Whether it is marked already, and this mark would add nothing.
    pub fn is_doomed_as(&self, doom: &Doom) -> bool {
        self.doomed.as_ref().is_some_and(|before| before.by_person || !doom.by_person)
    }

    /// What a spare becomes when it is claimed for a job (D18). Address, template, creation and what others wrote stay.
    #[must_use]
    pub fn claimed(&self, hatchery: &str, worker: &str, job: &JobId, now: Timestamp) -> Self {
        Self {
            hatchery_name: hatchery.to_owned(),
            worker_name: worker.to_owned(),
            provisioning: false,
            job_id: job.to_string(),
            worker_start_time: now.into(),
            ..self.clone()
        }
    }
}

/// The JSON, byte for byte as Go writes it.
impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fields::write(self, f)
    }
}

/// The same JSON.
impl PartialEq for Annotation {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Annotation {}
