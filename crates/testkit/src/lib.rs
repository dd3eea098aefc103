//! A scripted Messages API over loopback HTTP
