//! `/api/v1/events`: the overview whenever it says something new, and every decision.
//!
//! The first event is the overview as it is. A listener that comes back with the number of the last decision that it has seen gets those that it
//! missed; one that falls behind gets them from the journal. Either way the numbers of decisions only grow.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, stream};
use http::{HeaderMap, StatusCode};
use roost_door::{House, Subscription};
use roost_views::{DecisionQuery, DecisionView, Overview};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

use super::answer::Fault;
use super::api::MAX_DECISIONS;
use super::app::App;

/// Four a second is as much as an eye can follow.
const BETWEEN_OVERVIEWS: Duration = Duration::from_millis(250);

/// How long something that changed without a word may go unseen.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// Proxies cut connections on which nothing is said for half a minute or so.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) async fn events(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let Ok(permit) = Arc::clone(&app.listeners).try_acquire_owned() else {
        let words = "there are too many listeners already";
        return Fault::new(StatusCode::SERVICE_UNAVAILABLE, words).into_response();
    };
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let listener = Listener::new(Arc::clone(&app.house), seen, app.closing.clone(), permit);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(listener.into_stream()).keep_alive(keep_alive).into_response()
}

#[derive(Debug)]
struct Listener {
    house: Arc<House>,
    news: Subscription,
    closing: watch::Receiver<bool>,
    /// The last overview that was sent.
    sent: Option<Arc<Overview>>,
    /// The feed said so since the overview was looked at.
    touched: bool,
    looked: Instant,
    /// The last decision that the listener knows.
    seen: u64,
    missed: VecDeque<Arc<DecisionView>>,
    _permit: OwnedSemaphorePermit,
}

impl Listener {
    fn new(
        house: Arc<House>,
        seen: Option<u64>,
        closing: watch::Receiver<bool>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        // Before anything is read, so that nothing falls in between.
        let news = house.feed.subscribe();
        Self {
            house,
            news,
            closing,
            sent: None,
            touched: false,
            looked: Instant::now(),
            seen: seen.unwrap_or_default(),
            missed: VecDeque::new(),
            _permit: permit,
        }
    }

    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut listener| {
            let news = listener.next().await?;
            Some((Ok(news.to_event()), listener))
        })
    }

    /// `None` when the service ends.
    async fn next(&mut self) -> Option<News> {
        if self.sent.is_none() {
            return Some(self.begin());
        }
        loop {
            if let Some(decision) = self.missed.pop_front() {
                if let Some(news) = self.news_of(decision) {
                    return Some(news);
                }
                continue;
            }
            let wait = if self.touched { BETWEEN_OVERVIEWS } else { LOOK_ANYWAY };
            tokio::select! {
                biased;
                _ = self.closing.changed() => return None,
                () = sleep_until(self.looked + wait) => {
                    self.looked = Instant::now();
                    self.touched = false;
                    let overview = self.house.overview();
                    if self.sent.as_ref().is_none_or(|sent| overview.has_news_since(sent)) {
                        return Some(self.show(overview));
                    }
                }
                decision = self.news.decisions.recv() => match decision {
                    Ok(decision) => {
                        if let Some(news) = self.news_of(decision) {
                            return Some(news);
                        }
                    }
                    Err(RecvError::Lagged(_)) => self.read_missed(),
                    Err(RecvError::Closed) => return None,
                },
                changed = self.news.changed.changed(), if !self.touched => match changed {
                    Ok(()) => self.touched = true,
                    Err(_) => return None,
                },
            }
        }
    }

    fn begin(&mut self) -> News {
        let overview = self.house.overview();
        let newest = DecisionQuery { limit: Some(1), ..DecisionQuery::default() };
        let last = self.house.decisions(&newest).last().map_or(0, |decision| decision.seq);
        // Beyond the last one: it was another life of the service that the listener knew.
        if self.seen == 0 || self.seen > last {
            self.seen = last;
        } else {
            self.read_missed();
        }
        self.looked = Instant::now();
        self.show(overview)
    }

    fn read_missed(&mut self) {
        let query = DecisionQuery {
            after: Some(self.seen),
            limit: Some(MAX_DECISIONS),
            ..DecisionQuery::default()
        };
        self.missed = self.house.decisions(&query).into_iter().map(Arc::new).collect();
    }

    fn show(&mut self, overview: Overview) -> News {
        let overview = Arc::new(overview);
        self.sent = Some(Arc::clone(&overview));
        News::Overview(overview)
    }

    /// `None` if the listener knows it.
    fn news_of(&mut self, decision: Arc<DecisionView>) -> Option<News> {
        if decision.seq <= self.seen {
            return None;
        }
        self.seen = decision.seq;
        Some(News::Decision(decision))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Overview(Arc<Overview>),
    Decision(Arc<DecisionView>),
}

impl News {
    fn to_event(&self) -> Event {
        let event = match self {
            Self::Overview(overview) => {
                Event::default().event("overview").json_data(overview.as_ref())
            }
            Self::Decision(decision) => Event::default()
                .event("decision")
                .id(decision.seq.to_string())
                .json_data(decision.as_ref()),
        };
        event.unwrap_or_else(|error| {
            // A view is plain values; it would be a fault of ours.
            tracing::error!(%error, "writing an event");
            Event::default().comment("an event could not be written")
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    use super::*;
    use crate::fake::{Fake, decision};

    struct Lab {
        fake: Arc<Fake>,
        listener: Listener,
        _close: watch::Sender<bool>,
    }

    async fn listening(fake: Fake, seen: Option<u64>) -> (Lab, News) {
        let (fake, (close, closing)) = (Arc::new(fake), watch::channel(false));
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let house = Arc::new(fake.house());
        let mut listener = Listener::new(house, seen, closing, permit);
        let first = listener.next().await.unwrap();
        (Lab { fake, listener, _close: close }, first)
    }

    impl Lab {
        /// What comes within a time, each with the milliseconds until then.
        async fn heard(&mut self, within: Duration) -> Vec<(u128, News)> {
            let (began, mut heard) = (Instant::now(), Vec::new());
            let _ = timeout(within, async {
                while let Some(news) = self.listener.next().await {
                    heard.push((began.elapsed().as_millis(), news));
                }
            })
            .await;
            heard
        }

        async fn decisions(&mut self) -> Vec<u64> {
            let heard = self.heard(Duration::from_secs(5)).await;
            let numbers = heard.into_iter().filter_map(|(_, news)| match news {
                News::Decision(decision) => Some(decision.seq),
                News::Overview(_) => None,
            });
            numbers.collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_overview_comes_at_once_and_then_only_if_it_says_something_new() {
        let (mut lab, first) = listening(Fake::default(), None).await;
        assert!(matches!(first, News::Overview(_)));
        assert_eq!(lab.heard(Duration::from_mins(1)).await, []);
        lab.fake.changes(|overview| overview.queue.oldest_waiting_secs = Some(99));
        let passed = Duration::from_secs(5);
        lab.fake.changes(|overview| overview.now += passed);
        assert_eq!(lab.heard(Duration::from_mins(1)).await, []);
        lab.fake.changes(|overview| overview.queue.waiting = 7);
        let heard = lab.heard(Duration::from_mins(1)).await;
        let [(_, News::Overview(overview))] = heard.as_slice() else { panic!("{heard:?}") };
        assert_eq!(overview.queue.waiting, 7);
    }

    #[tokio::test(start_paused = true)]
    async fn four_overviews_a_second_are_enough() {
        let (mut lab, _) = listening(Fake::default(), None).await;
        let fake = lab.fake.clone();
        let busy = tokio::spawn(async move {
            for waiting in 1..=1_000 {
                fake.changes(|overview| overview.queue.waiting = waiting);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let heard = lab.heard(Duration::from_secs(12)).await;
        busy.await.unwrap();
        let times: Vec<_> = heard.iter().map(|(at, _)| *at).collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 250), "{times:?}");
        assert!((39..=42).contains(&times.len()), "{times:?}");
        let Some((_, News::Overview(last))) = heard.last() else { panic!("{heard:?}") };
        assert_eq!(last.queue.waiting, 1_000, "the last word is not lost");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_without_a_word_is_seen_within_a_second() {
        let (mut lab, _) = listening(Fake::default(), None).await;
        lab.fake.changes_silently(|overview| overview.queue.waiting = 7);
        let heard = lab.heard(Duration::from_secs(5)).await;
        assert!(matches!(heard.as_slice(), [(..=1_001, News::Overview(_))]), "{heard:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn each_decision_is_told_once() {
        let fake = Fake::default();
        fake.decides(decision(1));
        let (mut lab, _) = listening(fake, None).await;
        lab.fake.decides(decision(2));
        lab.fake.decides(decision(3));
        assert_eq!(lab.decisions().await, [2, 3], "the first one is in the overview");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_back_gets_what_was_missed() {
        let fake = Fake::default();
        (1..=9).for_each(|seq| fake.decides(decision(seq)));
        let (mut lab, _) = listening(fake, Some(6)).await;
        lab.fake.decides(decision(10));
        assert_eq!(lab.decisions().await, [7, 8, 9, 10]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_falls_behind_gets_them_from_the_journal() {
        let (mut lab, _) = listening(Fake::default(), None).await;
        (1..=700).for_each(|seq| lab.fake.decides(decision(seq)));
        assert_eq!(lab.decisions().await, (1..=700).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_restart_of_the_service_its_numbers_begin_anew() {
        let fake = Fake::default();
        fake.decides(decision(1));
        let (mut lab, _) = listening(fake, Some(5_000)).await;
        lab.fake.decides(decision(2));
        assert_eq!(lab.decisions().await, [2]);
    }
}
