//! A keyed priority queue: dedupe, delay, back-off, ageing.
