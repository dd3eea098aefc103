//! Pure analysis of shell command lines
