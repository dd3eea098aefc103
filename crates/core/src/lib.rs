//! The pure reducer: every rule of the loop
