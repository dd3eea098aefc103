//! The runner with real programs, real requests over loopback and scripted models.

mod background;
mod callbacks;
mod commands;
mod documented;
mod ends;
mod prompts;
mod stage;
mod together;
mod web;
