use roost_console::views::PoolView;

use super::table::{Table, left, right};
use super::words::or_dash;

pub(super) fn render(mut pools: Vec<PoolView>, width: Option<usize>) -> Vec<String> {
    if pools.is_empty() {
        return vec!["no pools: every worker is cloned when its job comes".to_owned()];
    }
    pools.sort_by(|a, b| (&a.model, &a.flavor).cmp(&(&b.model, &b.flavor)));
    let mut table = Table::new([
        left("MODEL"),
        left("FLAVOR").narrows(4, 6).goes(5),
        left("TEMPLATE").narrows(2, 8).goes(3),
        right("WANTED"),
        right("READY"),
        right("COMING").goes(7),
        right("IN USE").goes(6),
        right("MISSING"),
        left("WAITS FOR").narrows(1, 20).narrows(8, 9),
    ]);
    for pool in pools {
        table.row([
            pool.model,
            or_dash(pool.flavor.as_deref()),
            or_dash(pool.template.as_deref()),
            pool.wanted.to_string(),
            pool.ready.to_string(),
            pool.coming.to_string(),
            pool.in_use.to_string(),
            pool.missing.to_string(),
            or_dash(pool.waiting.as_deref()),
        ]);
    }
    table.render(width)
}
