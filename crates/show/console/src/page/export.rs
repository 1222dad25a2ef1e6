//! Lists as other programs take them, and the rule which rows a filter lets through: the same for the page, CSV and JSON.

use std::fmt::Write as _;

use roost_views::{DecisionView, RequestView, VmView};

use super::Asked;
use super::foreign::part;
use super::requests::in_usual_order;
use super::sorting::{Key, Sorting};

/// Whether something is among what was asked for, without regard to capitals.
fn has(asked: &str, texts: &[Option<&str>]) -> bool {
    let asked = asked.to_lowercase();
    asked.is_empty() || texts.iter().flatten().any(|text| text.to_lowercase().contains(&asked))
}

/// Those that the filter lets through, in the order that is asked for.
pub(crate) fn requests_wanted(mut requests: Vec<RequestView>, asked: &Asked) -> Vec<RequestView> {
    requests.retain(|request| {
        let facts = request.facts.0.iter().map(|fact| fact.value.as_deref());
        let known = [Some(&*request.id.id), request.project.as_deref(), request.vm.as_deref()];
        let texts: Vec<Option<&str>> = known.into_iter().chain(facts).collect();
        (asked.state.is_empty() || asked.state == request.state.as_str()) && has(&asked.q, &texts)
    });
    in_usual_order(&mut requests);
    let columns =
        requests.first().map(|it| super::requests::columns(&it.noun, &it.group, Some(&it.facts)));
    if let (Some(sorting), Some(columns)) = (Sorting::asked(&asked.sort), columns)
        && let Some(place) = sorting.place(&columns)
    {
        requests.sort_by(|a, b| sorting.order(&request_key(a, place), &request_key(b, place)));
    }
    requests
}

/// In the order of the columns.
fn request_key(request: &RequestView, place: usize) -> Key {
    let facts: Vec<_> = request.facts.columns().collect();
    match place {
        0 => Key::word(Some(&request.id.id)),
        1 => Key::Number(request.state as i64),
        2 => Key::number(request.queued.map(jiff::Timestamp::as_millisecond)),
        3 => Key::number(request.waited_secs.and_then(|secs| i64::try_from(secs).ok())),
        4 => Key::word(request.project.as_deref()),
        fact if fact < 5 + facts.len() => Key::word(facts[fact - 5].value.as_deref()),
        vm if vm == 5 + facts.len() => Key::word(request.vm.as_deref()),
        ran if ran == 6 + facts.len() => {
            let ran = request.outcome.as_ref().and_then(|outcome| outcome.ran_secs);
            Key::number(ran.and_then(|secs| i64::try_from(secs).ok()))
        }
        _ => Key::word(request.verdict.as_ref().map(|said| &*said.reason)),
    }
}

pub(crate) fn vms_wanted(mut vms: Vec<VmView>, asked: &Asked) -> Vec<VmView> {
    vms.retain(|vm| {
        let part = vm.phase.as_ref().map(|phase| super::vms::part_word(phase.part));
        let request = vm.request.as_ref().map(|request| &*request.id);
        let texts = [
            Some(&*vm.id),
            Some(&*vm.name),
            vm.address.as_deref(),
            vm.template.as_deref(),
            request,
        ];
        (asked.kind.is_empty() || asked.kind == vm.kind.as_str())
            && (asked.phase.is_empty() || part == Some(asked.phase.as_str()))
            && has(&asked.q, &texts)
    });
    let columns = super::block::fixed(super::vms::COLUMNS);
    if let Some(sorting) = Sorting::asked(&asked.sort)
        && let Some(place) = sorting.place(&columns)
    {
        vms.sort_by(|a, b| sorting.order(&vm_key(a, place), &vm_key(b, place)));
    }
    vms
}

fn vm_key(vm: &VmView, place: usize) -> Key {
    match place {
        0 => Key::word(Some(&vm.name)),
        1 => Key::word(Some(vm.kind.as_str())),
        2 => Key::word(vm.phase.as_ref().map(|phase| &*phase.words)),
        3 => Key::word(Some(vm.power.as_str())),
        4 => Key::number(vm.memory_mb.and_then(|mb| i64::try_from(mb).ok())),
        5 => Key::word(vm.address.as_deref()),
        6 => Key::word(vm.request.as_ref().map(|request| &*request.id)),
        7 => Key::number(vm.created.map(jiff::Timestamp::as_millisecond)),
        _ => Key::word(vm.fate.as_deref()),
    }
}

/// The way to the same rows for other programs. HTML.
pub(super) fn ways(path: &str, others: &[(&str, &str)]) -> String {
    let mut query = String::new();
    for (name, value) in others.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(query, "&amp;{name}={}", part(value));
    }
    format!(
        " <a href=\"/api/v1{path}?format=csv{query}\" download>CSV</a> <a href=\"/api/v1{path}?format=json{query}\">JSON</a>"
    )
}

pub(crate) fn requests_csv(requests: &[RequestView]) -> String {
    let own: Vec<String> = requests
        .first()
        .into_iter()
        .flat_map(|it| it.facts.0.iter())
        .map(|fact| fact.key.to_string())
        .collect();
    let head = [
        "id",
        "state",
        "queued",
        "waited_secs",
        "project",
        "vm",
        "ended",
        "ran_secs",
        "result",
        "verdict",
        "bound_by",
        "reason",
    ];
    let mut csv = line(head.iter().map(ToString::to_string).chain(own.iter().cloned()));
    for request in requests {
        let said = request.verdict.as_ref();
        let outcome = request.outcome.as_ref();
        let number = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
        let cells = [
            request.id.id.clone(),
            request.state.as_str().to_owned(),
            request.queued.map(|at| at.to_string()).unwrap_or_default(),
            number(request.waited_secs),
            request.project.clone().unwrap_or_default(),
            request.vm.clone().unwrap_or_default(),
            outcome.and_then(|it| it.ended).map(|at| at.to_string()).unwrap_or_default(),
            number(outcome.and_then(|it| it.ran_secs)),
            outcome.map(|it| it.result.clone()).unwrap_or_default(),
            said.map(|said| said.verdict.as_str().to_owned()).unwrap_or_default(),
            said.and_then(|said| said.bound_by.clone()).unwrap_or_default(),
            said.map(|said| said.reason.clone()).unwrap_or_default(),
        ];
        let facts = own.iter().map(|key| request.facts.get(key).unwrap_or_default().to_owned());
        csv.push_str(&line(cells.into_iter().chain(facts)));
    }
    csv
}

pub(crate) fn vms_csv(vms: &[VmView]) -> String {
    let head = [
        "name",
        "id",
        "kind",
        "phase",
        "power",
        "cpus",
        "memory_mb",
        "address",
        "request",
        "template",
        "created",
        "fate",
    ];
    let mut csv = line(head.iter().map(ToString::to_string));
    for vm in vms {
        let number = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
        csv.push_str(&line([
            vm.name.clone(),
            vm.id.clone(),
            vm.kind.as_str().to_owned(),
            vm.phase.as_ref().map(|phase| phase.words.clone()).unwrap_or_default(),
            vm.power.as_str().to_owned(),
            number(vm.cpus),
            number(vm.memory_mb),
            vm.address.clone().unwrap_or_default(),
            vm.request.as_ref().map(|request| request.id.clone()).unwrap_or_default(),
            vm.template.clone().unwrap_or_default(),
            vm.created.map(|at| at.to_string()).unwrap_or_default(),
            vm.fate.clone().unwrap_or_default(),
        ]));
    }
    csv
}

pub(crate) fn decisions_csv(decisions: &[DecisionView]) -> String {
    let head = [
        "seq", "at", "door", "kind", "subject", "name", "verdict", "bound_by", "reason", "vm",
        "times", "since",
    ];
    let mut csv = line(head.iter().map(ToString::to_string));
    for said in decisions {
        csv.push_str(&line([
            said.seq.to_string(),
            said.at.to_string(),
            said.door.clone(),
            said.subject_kind.as_str().to_owned(),
            said.subject.clone(),
            said.subject_name.clone().unwrap_or_default(),
            said.verdict.as_str().to_owned(),
            said.bound_by.clone().unwrap_or_default(),
            said.reason.clone(),
            said.vm.clone().unwrap_or_default(),
            said.times.to_string(),
            said.since.to_string(),
        ]));
    }
    csv
}

/// A spreadsheet takes what begins with these for a formula.
const FORMULAS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells = cells.into_iter().map(|cell| {
        let guard = if cell.starts_with(FORMULAS) { "'" } else { "" };
        if guard.is_empty() && !cell.contains([',', '"', '\n', '\r']) {
            return cell;
        }
        format!("\"{guard}{}\"", cell.replace('"', "\"\""))
    });
    format!("{}\r\n", cells.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::job;

    #[test]
    fn cells_stay_in_their_place_and_no_name_becomes_a_formula() {
        let mut strange = job("=cmd(),\"x\"");
        strange.project = Some("a\nb".into());
        let csv = requests_csv(&[strange]);
        let (_, row) = csv.split_once("\r\n").unwrap();
        assert!(row.starts_with("\"'=cmd(),\"\"x\"\"\",waiting,"), "{row}");
        assert!(row.contains("\"a\nb\""), "{row}");
    }

    #[test]
    fn a_filter_and_an_order_hold_for_every_form() {
        let mut long = job("long");
        long.waited_secs = Some(900);
        let jobs = || vec![job("one"), long.clone(), job("none")];
        let asked =
            |q: &str, sort: &str| Asked { q: q.into(), sort: sort.into(), ..Asked::default() };
        let ids = |asked| -> Vec<String> {
            requests_wanted(jobs(), &asked).into_iter().map(|it| it.id.id).collect()
        };
        assert_eq!(ids(asked("ONE", "")), ["none", "one"], "of one age, by name");
        assert_eq!(ids(asked("", "waited:desc"))[0], "long");
        assert_eq!(ids(asked("", "job")), ["long", "none", "one"]);
        assert_eq!(ids(asked("", "nonsense")).len(), 3);
    }
}
