//! A VM: what it says about itself, what it went through, why it stays or goes.

use askama::Template;
use jiff::Timestamp;
use roost_door::{House, Links};
use roost_views::words::{Style, short_id};
use roost_views::{DecisionQuery, SubjectKind, VmDetail, VmView};

use super::block::{Block, Html};
use super::foreign::{Name, Words, part, plain};
use super::request::decisions;
use super::shown::{Button, Fact, Ways, When};
use super::waterfall;

/// Decisions on one that is gone.
const SHOWN: usize = 50;

pub(super) fn blocks(
    house: &House,
    detail: &VmDetail,
    now: Timestamp,
) -> Result<Vec<Block>, askama::Error> {
    let ways = Ways::of(house);
    Ok(vec![
        Block::whole("subject", Subject::new(house, detail, &ways).render()?),
        Block::whole("waterfall", waterfall::of_vm(&detail.timeline, now)?),
        Block::whole("annotation", Annotation::new(detail).render()?.trim().to_owned()),
        decisions(&detail.decisions, &ways)?,
    ])
}

/// One that is gone: what it went through, and why it went. `None` if nothing is known of it.
pub(super) fn gone(
    house: &House,
    name_or_id: &str,
    now: Timestamp,
) -> Result<Option<(String, Vec<Block>)>, askama::Error> {
    let query = DecisionQuery {
        subject: Some(name_or_id.to_owned()),
        limit: Some(SHOWN),
        ..DecisionQuery::default()
    };
    let mut known = house.decisions(&query);
    known.retain(|decision| {
        decision.subject_kind == SubjectKind::Vm
            && (decision.subject == name_or_id
                || decision.subject_name.as_deref() == Some(name_or_id))
    });
    let Some(last) = known.last() else { return Ok(None) };
    let name = last.subject_name.clone().unwrap_or_else(|| name_or_id.to_owned());
    let subject = Subject {
        name: Name(&name),
        kind: "gone",
        mood: "quiet",
        fate: Some(Words(&last.reason)),
        facts: vec![
            Fact::new("Id", &Words(&last.subject)),
            Fact::new("Latest decision", &When::at(last.at)),
        ],
        delete: None,
    };
    let blocks = vec![
        Block::whole("subject", subject.render()?),
        Block::whole("waterfall", waterfall::of_vm(&house.timeline(&name), now)?),
        Block::whole("annotation", String::new()),
        decisions(&known, &Ways::of(house))?,
    ];
    Ok(Some((name, blocks)))
}

#[derive(Template)]
#[template(path = "vm.html")]
struct Subject<'a> {
    name: Name<'a>,
    kind: &'static str,
    mood: &'static str,
    fate: Option<Words<'a>>,
    facts: Vec<Fact>,
    /// `None` if there is nothing left to delete.
    delete: Option<Button>,
}

impl<'a> Subject<'a> {
    fn new(house: &House, detail: &'a VmDetail, ways: &Ways) -> Self {
        let vm = &detail.vm;
        let request = vm.request.as_ref().map(|request| {
            let name = short_id(&request.id);
            match ways.request(request) {
                Some(href) => Fact::link("Serves", &href, name),
                None => Fact::new("Serves", &Name(name)),
            }
        });
        let facts = [
            Fact::copied("Name", Some(&vm.name)),
            Fact::copied("Id", Some(&vm.id)),
            Fact::text("Phase", vm.phase.as_ref().map(|phase| phase.words.as_str())),
            vm.phase
                .as_ref()
                .and_then(|phase| phase.since)
                .map(|since| Fact::new("In it for", &When::ago(since))),
            Fact::text("Power", Some(vm.power.as_str())),
            request,
            Fact::text("Template", vm.template.as_deref()),
            Some(Fact::new("Size", &vm.size(Style::Long))),
            Fact::copied("Address", vm.address.as_deref()),
            vm.created.map(|at| Fact::new("Created", &When::at(at))),
            vm.started.map(|at| Fact::new("At work since", &When::at(at))),
            Fact::elsewhere("Elsewhere", outside(house, vm), "Open in the vSphere client"),
        ];
        Self {
            name: Name(&vm.name),
            kind: vm.kind.as_str(),
            mood: vm.kind.mood().as_str(),
            fate: vm.fate.as_deref().map(Words),
            facts: facts.into_iter().flatten().chain(Fact::of_door(&vm.facts)).collect(),
            delete: Some(Button {
                post: format!("/api/v1/vms/{}/delete", part(&vm.id)),
                words: "Delete this VM".into(),
                confirm: format!(
                    "Mark {} for deletion? The guard sees it twice and then lets it go; what runs in it is lost.",
                    vm.name
                ),
                with: "{}",
                is_grave: true,
            }),
        }
    }
}

/// The VM in the vSphere client, by the template of the configuration.
fn outside(house: &House, vm: &VmView) -> Option<String> {
    Links::fill(house.links.vm.as_ref(), |name| match name {
        "id" => Some(vm.id.clone()),
        "name" => Some(vm.name.clone()),
        _ => None,
    })
}

/// A time that was never set is none: Go writes it as the first second of the year 1.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// What the VM says about itself, key by key where it is an object.
#[derive(Template)]
#[template(path = "annotation.html")]
struct Annotation {
    entries: Vec<(String, String)>,
    text: Option<String>,
}

impl Annotation {
    fn new(detail: &VmDetail) -> Self {
        let text = detail.annotation.as_deref().unwrap_or_default();
        let parsed: Option<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(text).ok();
        let show = |value: serde_json::Value| match value {
            serde_json::Value::String(text) if text == NEVER => "not set".to_owned(),
            serde_json::Value::String(text) => plain(&text).into_owned(),
            other => plain(&other.to_string()).into_owned(),
        };
        match parsed {
            Some(object) => Self {
                entries: object
                    .into_iter()
                    .map(|(key, value)| (plain(&key).into_owned(), show(value)))
                    .collect(),
                text: None,
            },
            None => Self {
                entries: Vec::new(),
                text: (!text.is_empty()).then(|| plain(text).into_owned()),
            },
        }
    }
}
