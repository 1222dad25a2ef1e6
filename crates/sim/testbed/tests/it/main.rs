//! The toy door at work, alone and beside another.

mod toy;
