//! Names that mean no good, and more of everything than fits.

use std::time::Duration;

use tokio::time::Instant;

use super::{Asked, Page, document};
use crate::fake::{Fake, decision, job, vm};
use crate::views::{LaneView, PoolView, VmView};

const HOSTILE: [&str; 5] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "x\u{202e}gnp.exe",
    "javascript:alert(1)\r\n\0",
    "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhh",
];

fn html(fake: &Fake, page: &Page) -> String {
    let rendered = page.render(fake, &Asked::default()).unwrap().unwrap();
    document(&rendered).unwrap()
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
            overview.workers = vec![LaneView {
                phase: "booting".into(),
                words: "booting".into(),
                count: 1,
                names: vec![name.into()],
            }];
            overview.pools = vec![PoolView {
                model: name.into(),
                template: Some(name.into()),
                flavor: Some(name.into()),
                wanted: 1,
                ready: 0,
                coming: 0,
                in_use: 0,
                missing: 1,
                waiting: Some(name.into()),
            }];
            overview.deletions.frozen = Some(name.into());
            overview.link.trouble = Some(name.into());
        });
        fake.shown().vms.push(named(name));
        let mut strange = job(name);
        (strange.project, strange.vm) = (Some(name.into()), Some(name.into()));
        fake.shown().jobs.push(strange);
        let mut said = decision(1);
        (said.subject, said.reason) = (name.into(), name.into());
        fake.decides(said);
        let pages =
            [Page::Overview, Page::Jobs, Page::Vms, Page::Decisions, Page::Deletions, Page::Link];
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

#[test]
fn ten_thousand_vms_and_five_hundred_jobs_are_a_quick_page() {
    let fake = Fake::default();
    fake.shown().vms = (0..10_000).map(|number| named(&format!("w{number}"))).collect();
    fake.shown().jobs = (0..500).map(|number| job(&number.to_string())).collect();
    let began = Instant::now();
    for (page, all) in [
        (Page::Overview, ""),
        (Page::Jobs, "1 to 100 of 501 jobs"),
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
    let rendered = Page::Vms.render(&fake, &asked).unwrap().unwrap();
    let html = document(&rendered).unwrap();
    assert!(html.contains(">needle<") && !html.contains(">hay<"), "{html}");
    assert!(html.contains("1 VMs of ours") && html.contains("value=\"needle\""));
}

#[test]
fn a_gate_that_bound_says_need_taken_and_limit() {
    let html = html(&Fake::default(), &Page::Job("42".into()));
    assert!(html.contains("<tr class=\"fail\">"), "{html}");
    assert!(html.contains("aria-label=\"10 taken, 1 needed, of 10\""), "{html}");
    assert!(html.contains("Bound by <b><bdi class=\"n\">workers</bdi></b>"), "{html}");
}
