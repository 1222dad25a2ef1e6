//! The web page in a real browser, against a running `roost demo`.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod stand_in;
mod webdriver;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Once};
use std::time::Duration;

use base64::Engine as _;
use roost_console::Settings;
use roost_oracle::Chromium;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::stand_in::StandIn;
use self::webdriver::{Browser, ENTER, ESCAPE, Look, TAB};

/// The demo; it ends with this value.
struct Demo {
    child: Child,
    url: String,
}

impl Demo {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_roost"))
            .arg("demo")
            .args(args)
            .args(["--plain", "--keep", "--seed", "7", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let url = first.split(' ').next().unwrap().to_owned();
        // What it says must be read, or it waits.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    async fn api(&self, path: &str) -> Value {
        let answer = client().get(format!("{}/api/v1{path}", self.url)).send().await.unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Fetching and starting it takes its time.
async fn chromium() -> Option<Chromium> {
    tokio::task::spawn_blocking(Chromium::start).await.unwrap()
}

const LIVE: &str = "return document.querySelector('#live').textContent === 'live'";
const FITS: &str =
    "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
const BUSY: &str =
    "return document.querySelector('#b-headline .says').textContent.includes('Blocked by')";
/// Where the keyboard is.
const HERE: &str = "const it = document.activeElement; return it.id || it.className || it.tagName";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_a_running_demo_and_steers_it() {
    let Some(chromium) = chromium().await else { return };
    // More jobs than are done before everything was looked at.
    let demo = Demo::start(&["hatchery", "--speed", "12", "--jobs", "600"]);
    let browser = Browser::open(client(), chromium.url(), &chromium.capabilities()).await;

    overview_moves(&demo, &browser).await;
    waterfall_is_right(&demo, &browser).await;
    every_page_fits(&demo, &browser).await;
    keyboard_is_enough(&demo, &browser).await;
    assert_eq!(browser.complaints().await, [""; 0], "nothing was blocked and nothing failed");
    actions_need_the_token(&demo, &browser).await;
    what_is_broken_is_said_and_mended(&demo, &browser).await;
    what_is_lost_is_grey(demo, &browser).await;
    browser.close().await;
}

/// All doors at once: each has its row on the overview, its list, and a page for each request.
#[tokio::test(flavor = "multi_thread")]
async fn each_door_has_its_pages() {
    let Some(chromium) = chromium().await else { return };
    let demo = Demo::start(&[]);
    let browser = Browser::open(client(), chromium.url(), &chromium.capabilities()).await;
    let mut pages = vec!["/".to_owned()];
    for (path, nouns) in [
        ("jobs", "jobs"),
        ("virtualmachines", "VirtualMachines"),
        ("agentmachines", "AgentMachines"),
        ("pods", "pods"),
    ] {
        let id = working(&demo, path).await;
        browser.go(&demo.url).await;
        let row = format!(
            "return [...document.querySelectorAll('.doors tbody th')].some(it => it.textContent.includes({}))",
            json!(nouns)
        );
        browser.until(&row).await;
        browser.go(&format!("{}/{path}", demo.url)).await;
        // Long ids are shown by their beginning.
        let name: String = id.chars().take(8).collect();
        let listed =
            format!("return document.querySelector('main').textContent.includes({})", json!(name));
        browser.until(&listed).await;
        let page = format!("/{path}/{}", id.replace('/', "%2F"));
        browser.go(&format!("{}{page}", demo.url)).await;
        browser.until("return document.querySelectorAll('.waterfall rect').length > 0").await;
        // The README has its own picture of a job.
        if path != "jobs" {
            browser.picture(&format!("{}.png", path.trim_end_matches('s'))).await;
        }
        pages.extend([format!("/{path}"), page]);
    }
    browser.go(&demo.url).await;
    browser.until(LIVE).await;
    browser.picture("doors.png").await;
    fits(&demo, &browser, &pages.iter().map(String::as_str).collect::<Vec<_>>()).await;
    an_api_server_that_is_cut_off_is_said_in_words(&demo, &browser).await;
    // A request may be over and forgotten by now.
    let complaints = browser.complaints().await;
    let complaints: Vec<_> =
        complaints.iter().filter(|it| !it.contains("404 (Not Found)")).collect();
    assert_eq!(complaints, [""; 0], "nothing was blocked and nothing failed");
    browser.close().await;
}

async fn an_api_server_that_is_cut_off_is_said_in_words(demo: &Demo, browser: &Browser) {
    let says = |words: &str| {
        let words = json!(words);
        format!("return document.querySelector('#b-needs').textContent.includes({words})")
    };
    browser.go(&demo.url).await;
    browser.until(LIVE).await;
    browser.run("document.querySelector('[data-post$=\"/demo/cut-kube\"]').click()").await;
    browser.until(&says("API server is unreachable since")).await;
    for words in ["VMs that run go on", "New and changed", "asked again every 5 s"] {
        assert_eq!(browser.run(&says(words)).await, true, "{words}");
    }
    let text = "return document.querySelector('#b-needs').textContent";
    let text = browser.run(text).await;
    assert_eq!(text.as_str().unwrap().matches("API server is unreachable").count(), 1, "{text}");
    browser.until(&says("unreachable").replace("return ", "return !")).await;
}

/// Whoever opens the page while servers fail can read what is going on, since when, and what happens next.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_opened_in_the_midst_of_chaos_says_what_goes_on() {
    let Some(chromium) = chromium().await else { return };
    let demo = Demo::start(&["hatchery", "--chaos", "--speed", "100"]);
    let browser = Browser::open(client(), chromium.url(), &chromium.capabilities()).await;
    browser.go(&demo.url).await;
    browser.until(LIVE).await;
    let needs = "document.querySelector('#b-needs').textContent";
    browser
        .until(&format!("return /(vCenter|CDS.*) is unreachable since [0-9:]+ UTC/.test({needs})"))
        .await;
    let text = browser.run(&format!("return {needs}")).await;
    let text = text.as_str().unwrap();
    assert!(text.contains("go on") && text.contains("asked again"), "{text}");
    browser.until(&format!("return !{needs}.includes('unreachable')")).await;
    browser.close().await;
}

/// A request of these that has its VM.
async fn working(demo: &Demo, path: &str) -> String {
    let deadline = Instant::now() + Duration::from_mins(5);
    loop {
        let all = demo.api(&format!("/{path}")).await;
        let found = all.as_array().unwrap().iter().find(|it| it["state"] == "working");
        if let Some(request) = found {
            return request["id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "none of {path} works: {all:#}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// From the button that breaks it to the words that say so, on whatever page one is.
async fn what_is_broken_is_said_and_mended(demo: &Demo, browser: &Browser) {
    let press =
        |name: &str| format!("document.querySelector('[data-post$=\"/demo/{name}\"]').click()");
    browser.go(&demo.url).await;
    browser.until(LIVE).await;
    let first = "return [...document.querySelectorAll('main > section:not([hidden])')].map(it => it.id).filter(id => id !== 'b-banners')[0]";
    assert_eq!(browser.run(first).await, "b-needs", "what needs a person comes first");
    // A curve stands at each number, and the day as a band, once two minutes have passed.
    browser.until("return document.querySelectorAll('.tiles .spark').length >= 6").await;
    browser.until("return document.querySelectorAll('#b-band polygon').length === 3").await;
    browser.run(&press("restart-vcenter")).await;
    browser.until("return document.querySelector('#b-needs').textContent.includes('vCenter is unreachable since')").await;
    for words in ["VMs that run go on", "deletions and warm pools wait", "asked again"] {
        let says = format!(
            "return document.querySelector('#b-needs').textContent.includes({})",
            json!(words)
        );
        assert_eq!(browser.run(&says).await, true, "{words}");
    }
    browser.go(&format!("{}/vms", demo.url)).await;
    browser.until("return document.querySelector('#b-banners').textContent.includes('vCenter is unreachable since')").await;
    browser
        .until("return !document.querySelector('#b-banners').textContent.includes('unreachable')")
        .await;
    // Everything is found from everywhere, and the only hit is opened.
    let vms = demo.api("/vms").await;
    // Spawning is paused, so that spares stay.
    let spare = vms.as_array().unwrap().iter().find(|vm| vm["kind"] == "spare").unwrap();
    let name = spare["name"].as_str().unwrap().to_owned();
    browser.press(['/']).await;
    browser.until("return document.activeElement.id === 'find'").await;
    browser.press(name.chars().chain([ENTER])).await;
    browser.until("return /^\\/vms\\/.+/.test(location.pathname)").await;
    let whole =
        format!("return document.querySelector('h1').textContent.includes({})", json!(name));
    browser.until(&whole).await;
    let rows = demo.api("/jobs?state=refused").await;
    assert!(rows.as_array().unwrap().iter().all(|job| job["state"] == "refused"), "{rows}");
}

/// What is shown when the service is gone is of then, and looks like it.
async fn what_is_lost_is_grey(demo: Demo, browser: &Browser) {
    browser.go(&demo.url).await;
    browser.until(LIVE).await;
    drop(demo);
    browser.until("return document.body.classList.contains('lost')").await;
    browser.until("return document.querySelector('#lost').textContent.includes('No connection to the service since')").await;
    let shade = "return Number(getComputedStyle(document.querySelector('main')).opacity) < 0.9";
    assert_eq!(browser.run(shade).await, true);
}

async fn overview_moves(demo: &Demo, browser: &Browser) {
    browser.go(&demo.url).await;
    browser.until(LIVE).await;
    let before = browser.run("return document.querySelector('#main').textContent").await;
    let moved = format!("return document.querySelector('#main').textContent !== {before}");
    browser.until(&moved).await;
    // What is there is what a reload would show, also after many changes.
    browser.until("return document.querySelectorAll('#b-lanes .lane li').length > 5").await;
    browser
        .until(
            "return fetch('/').then(page => page.text()).then(text => { \
             const page = new DOMParser().parseFromString(text, 'text/html'); \
             const words = (from) => ['headline', 'lanes', 'pools', 'capacity'].map(id => { \
               const it = from.querySelector('#b-' + id).cloneNode(true); \
               it.querySelectorAll('time').forEach(time => time.remove()); return it.textContent; }).join(); \
             return words(page) === words(document); })",
        )
        .await;
    if is_for_the_documents() {
        // A picture of a queue that waits for something says more.
        browser.until(BUSY).await;
    }
    browser.picture("overview.png").await;
    browser.look(Look::DESK.dark()).await;
    browser.picture("overview-dark.png").await;
    browser.look(Look::DESK).await;
}

/// Light and dark, on a desk and on a phone: nothing is cut off and nothing has to be pushed aside.
async fn every_page_fits(demo: &Demo, browser: &Browser) {
    let jobs = demo.api("/jobs").await;
    let job = format!("/jobs/{}", jobs[0]["id"].as_str().unwrap());
    let vms = demo.api("/vms").await;
    let vm = format!("/vms/{}", vms[0]["id"].as_str().unwrap());
    let paths =
        ["/", "/jobs", &job, "/vms", &vm, "/decisions", "/deletions", "/link", "/search?q=e"];
    fits(demo, browser, &paths).await;
    // What the browser kept for the way back goes on where it was.
    browser.run("history.back()").await;
    browser.until("return location.pathname === '/link'").await;
    browser.until(LIVE).await;
}

async fn fits(demo: &Demo, browser: &Browser, paths: &[&str]) {
    for look in [Look::PHONE, Look::TABLET, Look::SMALL, Look::DESK]
        .into_iter()
        .flat_map(|look| [look, look.dark()])
    {
        browser.look(look).await;
        for path in paths {
            browser.go(&format!("{}{path}", demo.url)).await;
            assert_eq!(browser.run(FITS).await, true, "{path} {look:?}");
            let back = browser.run("return getComputedStyle(document.body).backgroundColor").await;
            let [red, ..] = numbers(back.as_str().unwrap());
            assert_eq!(red < 128, look.is_dark, "{path} {look:?}: {back}");
        }
    }
    browser.look(Look::DESK).await;
}

/// Of `rgb(1, 2, 3)`.
fn numbers(colour: &str) -> [u32; 3] {
    let parts = colour.trim_start_matches("rgb(").trim_end_matches(')').split(',');
    let parts: Vec<u32> = parts.map(|part| part.trim().parse().unwrap()).collect();
    parts.try_into().unwrap()
}

async fn keyboard_is_enough(demo: &Demo, browser: &Browser) {
    browser.go(&format!("{}/jobs", demo.url)).await;
    browser.until(LIVE).await;
    browser.press([TAB]).await;
    assert_eq!(browser.run(HERE).await, "skip", "the first stop leads to the content");
    let seen = "const it = document.activeElement, box = it.getBoundingClientRect(); \
                return box.left >= 0 && box.width > 0 && getComputedStyle(it).outlineStyle !== 'none'";
    assert_eq!(browser.run(seen).await, true, "where the keyboard is can be seen");
    browser.run("document.body.dataset.same = 'yes'").await;
    browser.press([ENTER]).await;
    browser.press(['/']).await;
    browser.until("return document.activeElement.name === 'q'").await;
    assert_eq!(browser.run(seen).await, true);
    // Over the filter and the titles of columns to the first job, which Enter opens.
    for _ in 0..30 {
        browser.press([TAB]).await;
        if browser.run(HERE).await == "row" {
            break;
        }
    }
    assert_eq!(browser.run(HERE).await, "row");
    let same = "return document.body.dataset.same";
    assert_eq!(browser.run(same).await, "yes", "the way to the content loads no page");
    browser.press([ENTER]).await;
    browser.until("return /^\\/jobs\\/.+/.test(location.pathname)").await;
    browser.until(LIVE).await;
    browser.run("document.querySelector('#key').focus()").await;
    // A demo fills its token in; out first.
    browser.until("return document.body.classList.contains('may')").await;
    browser.press([ENTER]).await;
    browser.until("return !document.body.classList.contains('may')").await;
    browser.press([ENTER]).await;
    browser.until("return document.querySelector('#signin').open").await;
    browser.press([ESCAPE]).await;
    browser.until("return !document.querySelector('#signin').open").await;
    assert_eq!(browser.run(HERE).await, "key", "where it was before");
    browser.press([ENTER]).await;
    browser.until("return document.querySelector('#signin').open").await;
    browser.press("demo".chars().chain([ENTER])).await;
    browser.until("return document.body.classList.contains('may')").await;
    browser.run("document.querySelector('[data-post$=\"/recheck\"]').focus()").await;
    browser.press([ENTER]).await;
    browser.until("return document.querySelector('#ask').open").await;
    browser.press("by keyboard".chars().chain([ENTER])).await;
    browser
        .until("return document.querySelector('#said').textContent.includes('is looked at now')")
        .await;
    let said = demo.api("/decisions?verdict=steered").await;
    let words = said.as_array().unwrap().last().unwrap()["reason"].as_str().unwrap().to_owned();
    assert!(words.contains("by keyboard"), "{said}");
    // Out again, for those who come after.
    browser.run("sessionStorage.clear()").await;
}

async fn actions_need_the_token(demo: &Demo, browser: &Browser) {
    let bare = "return fetch('/api/v1/actions/pause', {method: 'POST'}).then(it => it.status)";
    assert_eq!(browser.run(bare).await, 401);
    assert_eq!(demo.api("/steering").await["spawning"], "open");

    browser.go(&demo.url).await;
    browser.until(LIVE).await;
    let visible = "const it = document.querySelector('[data-post$=\"/actions/pause\"]'); return Boolean(it && it.offsetParent)";
    browser.until(visible).await;
    browser.run("document.querySelector('#key').click()").await;
    assert_eq!(browser.run(visible).await, false, "without a token there are no buttons");
    sign_in(browser, "guess").await;
    browser
        .until("return document.querySelector('#said').textContent.includes('not the right one')")
        .await;
    sign_in(browser, "demo").await;
    browser.until(visible).await;
    browser.run("document.querySelector('[data-post$=\"/actions/pause\"]').click()").await;
    browser.until("return document.querySelector('#ask').open").await;
    browser
        .run("const ask = document.querySelector('#ask'); ask.querySelector('input').value = 'a test'; ask.querySelector('[value=yes]').click()")
        .await;
    browser.until("return document.querySelector('#b-banners').textContent.includes('Spawning is paused')").await;
    assert_eq!(demo.api("/steering").await["spawning"], "paused");
    let said = demo.api("/decisions?verdict=steered").await;
    let words = said.as_array().unwrap().last().unwrap()["reason"].as_str().unwrap().to_owned();
    assert!(words.contains("a test"), "{said}");
}

async fn sign_in(browser: &Browser, token: &str) {
    browser.run("document.querySelector('#key').click()").await;
    browser.until("return document.querySelector('#signin').open").await;
    let fill = format!(
        "const it = document.querySelector('#signin'); it.querySelector('input').value = {}; it.querySelector('[value=yes]').click()",
        json!(token)
    );
    browser.run(&fill).await;
}

/// One whose VM is there with all that led to its work, however long the machine takes.
async fn running_job(demo: &Demo) -> (String, Value) {
    let deadline = Instant::now() + Duration::from_mins(5);
    loop {
        let jobs = demo.api("/jobs").await;
        for job in jobs.as_array().unwrap().iter().filter(|job| job["state"] == "working") {
            let id = job["id"].as_str().unwrap().to_owned();
            let detail = demo.api(&format!("/jobs/{id}")).await;
            let steps = detail["vm"]["timeline"].as_array().cloned().unwrap_or_default();
            let is_up = |step: &Value| step["phase"] == "registering" && step["took_ms"].is_u64();
            if steps.iter().any(is_up) {
                return (id, detail);
            }
        }
        assert!(Instant::now() < deadline, "no job runs: {jobs:#}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// What is drawn is what the API says, to scale.
async fn waterfall_is_right(demo: &Demo, browser: &Browser) {
    let (id, detail) = running_job(demo).await;
    let steps = detail["vm"]["timeline"].as_array().cloned().unwrap_or_default();
    let claimed = steps.iter().rposition(|step| step["phase"] == "claiming").unwrap_or(0);
    let until = steps.iter().position(|step| step["phase"] == "working").unwrap_or(steps.len());
    let wanted: Vec<(Value, Value)> = steps[claimed..until]
        .iter()
        .filter(|step| step["took_ms"].is_u64())
        .map(|step| (step["words"].clone(), step["took_ms"].clone()))
        .collect();
    assert!(wanted.len() >= 4, "{detail}");
    browser.go(&format!("{}/jobs/{id}", demo.url)).await;
    let rows = browser
        .run(
            "return [...[...document.querySelectorAll('.waterfall')].pop().querySelectorAll('tr')].filter(row => row.querySelector('rect')).map(row => { const bar = row.querySelector('rect'); \
             return [row.querySelector('th').textContent, Number(bar.dataset.ms), Number(bar.getAttribute('x')), Number(bar.getAttribute('width'))] })",
        )
        .await;
    let rows: Vec<(String, u64, u64, u64)> = serde_json::from_value(rows).unwrap();
    for (words, took) in &wanted {
        let drawn = rows.iter().any(|row| *words == row.0.as_str() && *took == row.1);
        assert!(drawn, "{words} {took} is not in {rows:?}");
    }
    assert!(rows.windows(2).all(|pair| pair[0].2 <= pair[1].2), "in order: {rows:?}");
    assert!(rows.iter().all(|row| row.2 + row.3 <= 1_001), "within the axis: {rows:?}");
    let longest = rows.iter().max_by_key(|row| row.1).unwrap();
    assert!(rows.iter().all(|row| row.3 <= longest.3 + 1), "to scale: {rows:?}");
    browser.picture("job.png").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_do_nothing_in_a_browser() {
    let Some(chromium) = chromium().await else { return };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut shown = StandIn::hostile(NAMES[0], &NAMES);
    shown.overview.version = NAMES[1].into();
    let shown = Arc::new(shown);
    let page = stand_in::serve(listener, shown, Settings::default(), std::future::pending());
    tokio::spawn(page);
    let browser = Browser::open(client(), chromium.url(), &chromium.capabilities()).await;
    for path in
        ["/", "/jobs", "/vms", "/decisions?subject=%22%3E%3Cscript%3Ehacked%3D1%3C%2Fscript%3E"]
    {
        browser.go(&format!("{url}{path}")).await;
        browser.until(LIVE).await;
        let seen = browser
            .run(
                "return [typeof hacked, document.querySelectorAll('main script, main img').length]",
            )
            .await;
        assert_eq!(seen, json!(["undefined", 0]), "{path}");
    }
    browser.go(&url).await;
    let shown = browser.run("return document.querySelector('#b-lanes').textContent").await;
    for name in NAMES {
        let name = name.replace('\u{202e}', "\u{27e8}U+202E\u{27e9}");
        assert!(shown.as_str().unwrap().contains(&name), "{name} in {shown}");
    }
    for look in [Look::DESK, Look::PHONE.dark()] {
        browser.look(look).await;
        assert_eq!(browser.run(FITS).await, true, "long names are shortened: {look:?}");
    }
    browser.close().await;
}

const NAMES: [&str; 4] = [
    "<script>hacked=1</script>",
    "<img src=x onerror=hacked=1>",
    "x\u{202e}gnp.exe",
    "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhh",
];

/// Where the README finds its pictures; written only when asked.
fn is_for_the_documents() -> bool {
    std::env::var_os("ROOST_WRITE_DOCS").is_some()
}

fn keep_picture(name: &str, png: &str) {
    if is_for_the_documents() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
        std::fs::create_dir_all(&folder).unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(png).unwrap();
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}
