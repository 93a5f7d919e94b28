"""The archive: sessions kept as objects, each written once, and a manifest per session that says what counts.

What comes in are batches of redacted events, gathered by the lane (`Sink.gathering`); what goes out are objects in a
directory, or in whatever else keeps bytes under a name. `docs/archive.md` describes the format.

Read in this order: `objects` (what keeps bytes under a name), `files` (a directory that does), `manifest` (what is in
which object, and what is hidden), `sink` (the order of effects: object, then manifest, then the mark).
"""
