use std::time::Duration;

use roost_workqueue::{Ageing, Order, Settings};

use crate::script::Script;

fn ageing(secs: u64, ceiling: i32) -> Script {
    let ageing = Some(Ageing { after: Duration::from_secs(secs), ceiling });
    Script::new(&Settings { ageing, ..Settings::default() })
}

#[tokio::test(start_paused = true)]
async fn a_key_rises_level_by_level_and_keeps_the_priority_it_asked_for() {
    let mut script = ageing(10, i32::MAX);
    script.run("old@-100 mid hi@100 tick=9 >hi !hi").await;
    // Urgent keys come all the time. At ten seconds `mid` rises to the tail of 100, and `old` to 0.
    script.run("h1@100 tick=1 h2@100 >h1 h3@100 >h2 >mid@0").await;
    // Ten seconds later it is the turn of `old` to rise to the tail of 100.
    script.run("tick=9 h4@100 >h3 h5@100 >h4 tick=1 h6@100 >h5 h7@100 >h6 >old@-100 >h7 >-").await;
}

#[tokio::test(start_paused = true)]
async fn without_ageing_a_low_key_waits_for_as_long_as_higher_ones_come() {
    let mut script = Script::new(&Settings { ageing: None, ..Settings::default() });
    script.run("old@-100").await;
    for number in 0..100 {
        script.run(&format!("h{number} tick=3600 >h{number} !h{number}")).await;
    }
    script.run(">old >-").await;
}

#[tokio::test(start_paused = true)]
async fn with_ageing_no_key_starves_under_constant_load() {
    let mut script = ageing(300, i32::MAX);
    script.run("old@-4 u0@100 u1@97").await;
    let mut served = 0;
    for number in 0..200 {
        script.run(&format!("u{}@100 tick=30", number + 2)).await;
        let taken = script.queue.try_get(Order::Priority).unwrap();
        served += 1;
        if taken.key() == "old" {
            break;
        }
    }
    assert!(served < 200, "the old key was never served");
}

#[tokio::test(start_paused = true)]
async fn nothing_rises_above_the_ceiling() {
    let mut script = ageing(10, 50);
    script.run("old@-100 mid@50 hi@100 tick=10 >hi !hi hi@100 tick=10 >hi !hi").await;
    script.run("hi@100 tick=100 >hi >mid@50 >old@-100").await;
}

#[tokio::test(start_paused = true)]
async fn a_raise_by_hand_counts_from_the_level_that_was_reached() {
    let mut script = ageing(10, i32::MAX);
    script.run("old@-5 mid@3 top@9 x@9 tick=10 >top late@3").await;
    // mid rose to 9 and old to 3: asking for 2 moves nothing, asking for 9 puts it behind mid.
    script.run("old@2 old@9 >x >mid@3 >old@9 >late@3").await;
}

#[tokio::test(start_paused = true)]
async fn by_age_the_key_that_waits_longest_comes_first() {
    let mut script = ageing(10, i32::MAX);
    script.run("a@-5 b@100 tick=1 c@50 d+1 a@60 tick=1").await;
    script.order = Order::Age;
    script.run(">a@60 >b@100 >c@50 >d@0 >-").await;
}

#[tokio::test(start_paused = true)]
async fn by_age_a_taken_key_waits_from_when_it_is_done() {
    let mut script = ageing(10, i32::MAX);
    script.order = Order::Age;
    script.run("a >a a@9 tick=1 b !a >b >a@9 >-").await;
}
