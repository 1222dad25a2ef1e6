//! What the demos of Kubernetes doors share: a page, a narrator, and a checked end. They run in real time, with short waits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use roost_client::{interruption, say};
use roost_clock::{Clock, SystemClock};
use roost_console::{Console, Settings};
use roost_door::{Core, Feed, FrontDoor, History, House, Links};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::Demo;
use super::door_tricks::DoorTricks;
use super::report::Check;
use super::{CONSOLE_TOKEN, listen, until_true};

/// How often the narrator looks, and the page is told to.
const GLANCE: Duration = Duration::from_millis(500);
/// A machine that is this slow shows nothing to anybody.
const PATIENCE: Duration = Duration::from_mins(5);

/// Tells on each look what has changed since the last one.
#[derive(Debug)]
pub(super) struct Narrator {
    door: Arc<dyn FrontDoor>,
    began: Instant,
    told: BTreeMap<String, String>,
    patience: Duration,
    is_heard: bool,
}

impl Narrator {
    fn new(door: Arc<dyn FrontDoor>) -> Self {
        let began = Instant::now();
        Self { door, began, told: BTreeMap::new(), patience: PATIENCE, is_heard: true }
    }

    /// One that waits as long as this and says nothing: others tell the story.
    pub(super) fn silent(door: Arc<dyn FrontDoor>, patience: Duration) -> Self {
        Self { patience, is_heard: false, ..Self::new(door) }
    }

    pub(super) fn says(&self, words: &str) {
        if self.is_heard {
            say(&format!("{:>4} s  {words}\n", self.began.elapsed().as_secs()));
        }
    }

    fn look(&mut self) {
        let noun = self.door.words().noun;
        let mut now = BTreeMap::new();
        for request in self.door.requests() {
            let mut words = request.state.as_str().to_owned();
            if let Some(said) = &request.verdict {
                let _ = write!(words, ": {}", said.reason);
            }
            now.insert(request.id.to_string(), words);
        }
        for (id, words) in &now {
            if self.told.get(id) != Some(words) {
                self.says(&format!("{noun} {id} is {words}"));
            }
        }
        for id in self.told.keys().filter(|id| !now.contains_key(*id)) {
            self.says(&format!("{noun} {id} is gone"));
        }
        self.told = now;
    }

    /// Tells what happens until it is so.
    pub(super) async fn until(
        &mut self,
        what: &str,
        is_so: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let (end, patience) = (Instant::now() + self.patience, self.patience);
        while !is_so() {
            self.look();
            anyhow::ensure!(Instant::now() < end, "waited {patience:?} in vain for {what}");
            sleep(GLANCE).await;
        }
        self.look();
        Ok(())
    }
}

/// Shows a door while its story is told, then says what was checked.
pub(super) async fn play<S>(
    args: &Demo,
    door: Arc<dyn FrontDoor>,
    core: Option<Arc<dyn Core>>,
    tricks: DoorTricks,
    story: S,
) -> anyhow::Result<ExitCode>
where
    S: AsyncFnOnce(&mut Narrator) -> anyhow::Result<Vec<Check>>,
{
    let interrupted = interruption()?;
    let listener = listen(args.listen).await?;
    let url = format!("http://{}", listener.local_addr().context("the web page's address")?);
    say(&format!(
        "{url} shows what happens (the token for actions is \"{CONSOLE_TOKEN}\"; Ctrl-C ends it)\n\n{}\n\n",
        door.words().about
    ));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let feed = Feed::default();
    let house = House {
        name: format!("demo of {}", door.words().name),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock.now(),
        clock,
        observes_only: false,
        doors: vec![Arc::clone(&door)],
        core,
        feed: feed.clone(),
        history: History::default(),
        links: Links::default(),
        demonstration: Some(Arc::new(tricks)),
    };
    let settings = Settings { token: Some(CONSOLE_TOKEN.into()), ..Settings::default() };
    let (close, closing) = watch::channel(false);
    let console = Console { house: Arc::new(house), settings };
    let page = tokio::spawn(console.serve(listener, until_true(closing)));
    let mut narrator = Narrator::new(door);
    let glancing = async {
        loop {
            sleep(GLANCE).await;
            feed.touch();
        }
    };
    let told = tokio::select! {
        () = interrupted => Ok(None),
        checks = story(&mut narrator) => checks.map(Some),
        never = glancing => never,
    };
    let code = match told? {
        None => ExitCode::SUCCESS,
        Some(checks) => {
            let code = conclude(&checks);
            // Nothing is taken away from somebody who is reading it.
            if args.keep || feed.has_listeners() {
                let until = if args.keep { "" } else { "as long as it is open; " };
                say(&format!("\n{url} stays; {until}Ctrl-C ends it\n"));
                let glancing = async {
                    while args.keep || feed.has_listeners() {
                        sleep(GLANCE).await;
                        feed.touch();
                    }
                };
                tokio::select! {
                    () = interruption()? => {}
                    () = glancing => {}
                }
            }
            code
        }
    };
    close.send_replace(true);
    let _ = tokio::time::timeout(super::CLOSE_WITHIN, page).await;
    Ok(code)
}

fn conclude(checks: &[Check]) -> ExitCode {
    say("\nChecked:\n");
    for check in checks {
        say(&format!("  {} {}\n", if check.holds { "ok    " } else { "BROKEN" }, check.words));
    }
    if checks.iter().all(|check| check.holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
