//! The rules, case by case. The words are those of `script`.

use roost_workqueue::Settings;

use crate::script::Script;

const CASES: &[(&str, &str)] = &[
    ("Q1 first in, first out", "a b c >a >b >c >-"),
    ("Q2 highest first, none means 0", "a@-4 b@100 c@97 d >b@100 >c@97 >d@0 >a@-4"),
    ("Q3 a duplicate keeps its place", "a@1 b@1 a@1 len=2 >a >b >-"),
    ("Q4 a raised key goes to the tail of its level", "a b@5 a@5 >b@5 >a@5"),
    ("Q5 a raise overtakes", "a b c c@1 >c@1 len=2 >a >b"),
    ("Q6 never lowered", "a@2 a@1 >a@2 >-"),
    ("Q7 no priority is 0, which raises", "a@-100 a >a@0"),
    ("Q8 raise, then a lower add", "a@3 b@3 a@9 a@2 >a@9 >b@3"),
    ("Q9 adding again ends the delay and keeps the place", "a+3600 b a >a >b >-"),
    ("Q10 a delay that runs out goes to the tail", "a+1 b tick=1 >b >a"),
    ("Q11 higher priority and earlier time", "a@50+10 a@10+5 tick=4.999 >- tick=0.001 >a@50 >-"),
    ("Q12 a later time does not extend", "a@10+5 a@99+10 tick=4.9 >- tick=0.1 >a@99"),
    ("Q13 a ripe key of high priority overtakes", "low@-100 hi+1 tick=1 >hi@0 >low@-100"),
    ("Q14 now wins over later", "a+0 a+3600 >a"),
    ("Q15 by priority, then by time", "a+10 b+5 c@9+5 tick=10 >c@9 >b >a"),
    ("Q16 a taken key is passed over", "a >a a@7 b@3 >b@3 >- !a >a@7"),
    ("Q17 a taken key counts", "a >a a len=1 >- !a >a len=0"),
    ("Q18 a taken key keeps its place", "a >a a b >b c !a >a >c"),
    (
        "Q19 back-off per key, reset by forget",
        "a~ tick=0.004 >- tick=0.001 >a !a a~ tick=0.009 >- tick=0.001 >a !a \
         a~ tick=0.019 >- tick=0.001 >a !a fails:a=3 forget:a a~ tick=0.005 >a",
    ),
    ("Q20 each rate-limited add counts", "a~ a~ fails:a=2 tick=0.004 >- tick=0.001 >a >-"),
    ("Q21 the shorter of back-off and delay", "a+10~ tick=0.004 >- tick=0.001 >a"),
    ("Q22 a time that has passed is now", "a+-1~ fails:a=1 >a"),
    ("Q26 delayed keys are not ready", "a+60 b c+60 d len=2"),
    ("a delayed key that is taken waits for both", "a >a a+1 tick=2 len=1 >- !a >a"),
    ("a delay that outlasts the run", "a >a a+5 !a >- tick=5 >a"),
    ("a raised, taken key comes back at its level", "a b >a a@1 a@9 c@9 !a >a@9 >c >b"),
];

#[tokio::test(start_paused = true)]
async fn the_queue_follows_the_table() {
    for (case, script) in CASES {
        println!("{case}");
        // Ageing must make no difference within the first minutes.
        for ageing in [None, Settings::default().ageing] {
            Script::new(&Settings { ageing, ..Settings::default() }).run(script).await;
        }
    }
}

#[tokio::test]
async fn q23_levels_in_order_and_fifo_inside_each() {
    let mut script = Script::new(&Settings::default());
    let levels = [-10, -5, 0, 5, 10];
    for number in 0..1000 {
        for level in levels {
            script.run(&format!("k{level}/{number}@{level}")).await;
        }
    }
    for level in levels.into_iter().rev() {
        for number in 0..1000 {
            script.run(&format!(">k{level}/{number}@{level}")).await;
        }
    }
    script.run(">-").await;
}
