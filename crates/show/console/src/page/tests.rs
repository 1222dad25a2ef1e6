//! Names that mean no good, and more of everything than fits.

use std::time::Duration;

use roost_door::{House, Links};
use roost_views::{
    AddressesView, Facts, LaneView, Overview, Part, PoolView, RequestState, SubjectKind, Verdict,
    VmView,
};
use tokio::time::Instant;

use super::block::Content;
use super::{Asked, Page, Patch, document};
use crate::fake::{Fake, decision, job, vm};

const HOSTILE: [&str; 5] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "x\u{202e}gnp.exe",
    "javascript:alert(1)\r\n\0",
    "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhh",
];

fn html(fake: &Fake, page: &Page) -> String {
    let rendered = page.render(&fake.house(), &Asked::default()).unwrap().unwrap();
    document(&rendered, None).unwrap()
}

fn jobs() -> Page {
    Page::Requests("jobs".into())
}

fn named(name: &str) -> VmView {
    VmView { id: format!("vm-{name}"), name: name.into(), ..vm() }
}

#[test]
fn hostile_names_are_shown_and_do_nothing() {
    for name in HOSTILE {
        let fake = Fake::default();
        fake.changes_silently(|overview| {
            overview.service = name.into();
            overview.what_binds = Some(name.into());
            overview.lanes = vec![LaneView {
                phase: "booting".into(),
                words: "booting".into(),
                part: Part::Starting,
                count: 1,
                names: vec![name.into()],
            }];
            overview.pools = vec![PoolView {
                door: "bakery".into(),
                name: name.into(),
                template: Some(name.into()),
                size: Some(name.into()),
                wanted: 1,
                ready: 0,
                coming: 0,
                in_use: 0,
                missing: 1,
                waiting: Some(name.into()),
                facts: Facts::default().listed("x", "X", Some(name)),
            }];
            overview.deletions.frozen = Some(name.into());
            overview.link.trouble = Some(name.into());
        });
        fake.shown().vms.push(named(name));
        let mut strange = job(name);
        strange.facts = Facts::default().listed("bread", "Bread", Some(name));
        (strange.project, strange.vm) = (Some(name.into()), Some(name.into()));
        fake.shown().jobs.push(strange);
        let mut said = decision(1);
        (said.subject, said.reason) = (name.into(), name.into());
        fake.decides(said);
        let pages =
            [Page::Overview, jobs(), Page::Vms, Page::Decisions, Page::Deletions, Page::Link];
        for page in pages {
            let html = html(&fake, &page);
            let bare = html.replace("<script src=\"/assets/roost.js\" defer></script>", "");
            assert!(!bare.contains("<script") && !html.contains("<img"), "{name:?} on {page:?}");
            let letters = html.chars().filter(|letter| *letter != '\n');
            assert!(!letters.clone().any(char::is_control), "{name:?} on {page:?}");
            assert!(!letters.clone().any(|letter| letter == '\u{202e}'), "{name:?} on {page:?}");
            assert!(!html.contains("href=\"javascript:"), "{name:?} on {page:?}");
        }
    }
}

fn delta(fake: &Fake, page: &Page, change: impl FnOnce(&Fake)) -> (usize, usize) {
    let render = || page.render(&fake.house(), &Asked::default()).unwrap().unwrap();
    let before = render();
    change(fake);
    let after = render();
    let sent = serde_json::to_string(&Patch::between(&before, &after)).unwrap();
    (sent.len(), document(&after, None).unwrap().len())
}

/// As a busy overview has it.
fn busy() -> Fake {
    let fake = Fake::default();
    fake.changes_silently(|overview| {
        overview.lanes = ["cloning", "booting", "working"]
            .map(|phase| LaneView {
                phase: phase.into(),
                words: phase.into(),
                part: Part::Starting,
                count: 12,
                names: (0..12).map(|number| format!("worker-{phase}-{number}")).collect(),
            })
            .to_vec();
        let counts = AddressesView { total: 254, free: 200, used: 54, ..Default::default() };
        overview.addresses = Some(counts);
    });
    fake.shown().jobs = (0..500).map(|number| job(&number.to_string())).collect();
    (0..20).for_each(|seq| {
        let mut said = decision(seq);
        said.reason = format!("all {seq} workers are there");
        fake.decides(said);
    });
    fake
}

#[test]
fn a_delta_is_a_small_part_of_the_page() {
    let overview = |change: fn(&mut Overview)| {
        delta(&busy(), &Page::Overview, |fake| fake.changes_silently(change))
    };
    let (sent, page) = overview(|seen| seen.queue.waiting += 1);
    assert!(sent * 50 < page, "one number: {sent} of {page}");
    let (sent, page) = overview(|seen| {
        let moved = seen.lanes[1].names.remove(3);
        seen.lanes[1].count -= 1;
        seen.lanes[2].names.push(moved);
        seen.lanes[2].count += 1;
    });
    assert!(sent * 25 < page, "a worker went on: {sent} of {page}");
    let (sent, page) = delta(&busy(), &Page::Overview, |fake| {
        let mut said = decision(99);
        said.reason = "something else".into();
        fake.decides(said);
    });
    assert!(sent * 15 < page, "a decision: {sent} of {page}");
    let (sent, page) = delta(&busy(), &jobs(), |fake| {
        fake.shown().jobs[7].state = RequestState::Starting;
        fake.shown().jobs.remove(50);
    });
    assert!(sent * 40 < page, "one job of a hundred: {sent} of {page}");
}

#[test]
fn the_same_word_on_many_jobs_is_one_line() {
    let fake = Fake::default();
    for number in 0..9 {
        let mut said = decision(number);
        said.subject = format!("job-{number}");
        fake.decides(said);
    }
    let html = html(&fake, &Page::Overview);
    assert!(html.contains("job-8</bdi></a> and 8 more"), "{html}");
    assert_eq!(html.matches("all 10 workers are there").count(), 1);
}

#[test]
fn every_row_has_a_cell_for_every_column() {
    let fake = Fake::default();
    let mut bare = decision(2);
    bare.gates.clear();
    fake.shown().decisions.push(bare.clone());
    fake.decides(bare);
    for page in [Page::Overview, jobs(), Page::Vms, Page::Decisions, Page::Deletions] {
        let rendered = page.render(&fake.house(), &Asked::default()).unwrap().unwrap();
        for block in rendered.blocks {
            let Content::Table(table) = block.content else { continue };
            assert!(!table.rows.is_empty(), "{page:?}");
            for row in table.rows {
                // The evidence is a table of its own within a cell.
                let (before, after) = match row.html.split_once("<details") {
                    None => (row.html.as_str(), ""),
                    Some((before, rest)) => (before, rest.rsplit("</details>").next().unwrap()),
                };
                let cells = |html: &str| html.matches("<td").count() + html.matches("<th ").count();
                let found = cells(before) + cells(after);
                assert_eq!(found, table.columns.len(), "{page:?}: {}", row.html);
            }
        }
    }
}

#[test]
fn a_vm_that_is_gone_still_tells_why() {
    let fake = Fake::default();
    let mut said = decision(5);
    (said.subject_kind, said.subject) = (SubjectKind::Vm, "vm-99".into());
    (said.subject_name, said.reason) =
        (Some("brave-bohr".into()), "its worker has finished".into());
    fake.decides(said);
    for name in ["vm-99", "brave-bohr"] {
        let html = html(&fake, &Page::Vm(name.into()));
        assert!(html.contains("brave-bohr") && html.contains("its worker has finished"), "{html}");
        assert!(!html.contains("/delete"), "nothing is left to delete");
    }
    let unknown = Page::Vm("vm-100".into()).render(&fake.house(), &Asked::default()).unwrap();
    assert!(unknown.is_none());
}

#[test]
fn the_oldest_job_is_one_that_waits_for_us() {
    let fake = Fake::default();
    let mut refused = job("refused-one");
    let mut said = decision(1);
    said.verdict = Verdict::Refused;
    (refused.verdict, refused.state) = (Some(said), RequestState::Refused);
    fake.shown().first_jobs = vec![refused];
    fake.changes_silently(|overview| overview.queue.refused = 1);
    let html = html(&fake, &Page::Overview);
    assert!(html.contains("The oldest job that waits, <a href=\"/jobs/42\">"), "{html}");
    assert!(html.contains("<a href=\"/jobs?state=refused\"><b>1</b> jobs refused"), "{html}");
    // The number led to the list of those that wait, where refused ones are not.
    let asked = Asked { state: "refused".into(), ..Asked::default() };
    let rendered = jobs().render(&fake.house(), &asked).unwrap().unwrap();
    let html = document(&rendered, None).unwrap();
    assert!(html.contains(">refused-one<") && !html.contains("/jobs/42\""), "{html}");
}

#[test]
fn ten_thousand_vms_and_five_hundred_jobs_are_a_quick_page() {
    let fake = Fake::default();
    fake.shown().vms = (0..10_000).map(|number| named(&format!("w{number}"))).collect();
    fake.shown().jobs = (0..500).map(|number| job(&number.to_string())).collect();
    let began = Instant::now();
    for (page, all) in [
        (Page::Overview, ""),
        (jobs(), "1 to 100 of 501 jobs"),
        (Page::Vms, "1 to 100 of 10001 VMs"),
    ] {
        let html = html(&fake, &page);
        assert!(html.contains(all), "{page:?}");
        assert!(html.len() < 150_000, "{page:?} has {} bytes", html.len());
    }
    // Of a debug build on a machine that does other things.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[test]
fn a_list_is_narrowed_by_what_is_asked() {
    let fake = Fake::default();
    fake.shown().vms = vec![named("needle"), named("hay")];
    let asked = Asked { q: "needle".into(), ..Asked::default() };
    let rendered = Page::Vms.render(&fake.house(), &asked).unwrap().unwrap();
    let html = document(&rendered, None).unwrap();
    assert!(html.contains(">needle<") && !html.contains(">hay<"), "{html}");
    assert!(html.contains("1 VMs of ours") && html.contains("value=\"needle\""));
}

#[test]
fn a_gate_that_bound_says_need_taken_and_limit() {
    let html = html(&Fake::default(), &Page::Request { nouns: "jobs".into(), id: "42".into() });
    assert!(html.contains("<tr class=\"fail\">"), "{html}");
    assert!(html.contains("aria-label=\"10 taken, 1 needed, of 10\""), "{html}");
    assert!(html.contains("Bound by <b><bdi class=\"n\">workers</bdi></b>"), "{html}");
    assert!(html.contains("VMs at work at the same time</bdi></small>"), "{html}");
}

#[test]
fn a_link_leads_out_only_for_the_door_that_it_is_of() {
    let fake = Fake::default();
    let request = |links: Links| {
        let house = House { links, ..fake.house() };
        let page = Page::Request { nouns: "jobs".into(), id: "42".into() };
        let rendered = page.render(&house, &Asked::default()).unwrap().unwrap();
        document(&rendered, None).unwrap()
    };
    let of = |door: &str| Links {
        requests: [(door.to_owned(), "https://ci.example/{project}/{id}".to_owned())].into(),
        vm: Some("https://vc.example/{id}".into()),
        docs: Some("https://docs.example/{page}".into()),
    };
    let html = request(of("bakery"));
    assert!(html.contains("href=\"https://ci.example/SHOP/42\""), "{html}");
    let docs = "href=\"https://docs.example/configuration.md#gates\"";
    assert!(html.contains(docs) && html.contains(">maxWorker</a>"), "{html}");
    assert!(!request(of("another")).contains("ci.example"));
    assert!(!request(Links::default()).contains("docs.example"));

    fake.changes_silently(|overview| overview.link.trouble = Some("refused".into()));
    let house = House { links: of("bakery"), ..fake.house() };
    let page = |page: Page| {
        let rendered = page.render(&house, &Asked::default()).unwrap().unwrap();
        document(&rendered, None).unwrap()
    };
    let runbook = "https://docs.example/runbooks/vcenter-link-down.md";
    assert!(page(Page::Overview).contains(runbook) && page(Page::Vms).contains(runbook));
    assert!(page(Page::Vm("w-1".into())).contains("https://vc.example/vm-7"));
}

#[test]
fn decisions_are_sorted_by_the_column_that_is_asked_for() {
    let fake = Fake::default();
    for (seq, subject) in [(1, "b-one"), (2, "a-two"), (3, "c-three")] {
        let mut said = decision(seq);
        said.subject = subject.into();
        fake.decides(said);
    }
    let places = |sort: &str| {
        let asked = Asked { sort: sort.into(), ..Asked::default() };
        let rendered = Page::Decisions.render(&fake.house(), &asked).unwrap().unwrap();
        let html = document(&rendered, None).unwrap();
        ["a-two", "b-one", "c-three"].map(|name| html.find(name).unwrap())
    };
    assert!(places("about").is_sorted());
    assert!(places("about:desc").iter().rev().is_sorted());
    let [two, one, three] = places("");
    assert!(three < two && two < one, "newest first");
}

#[test]
fn a_request_that_waits_shows_its_place_and_who_holds_what_it_needs_each_as_a_link() {
    let fake = Fake::default();
    fake.shown().vms.push(VmView { request: Some(job("a/b c").id), ..named("busy") });
    let html = html(&fake, &Page::Request { nouns: "jobs".into(), id: "42".into() });
    for part in [
        "Place <b>1</b> of 1 in line",
        "<th scope=\"col\">Project</th>",
        "<a href=\"/vms/busy\">",
        "<a href=\"/jobs/a%2Fb%20c\">",
        "<a href=\"/jobs?q=SHOP\">",
        "It waits for gate <b>",
        "no estimate yet",
    ] {
        assert!(html.contains(part), "{part} is missing in\n{html}");
    }
}
