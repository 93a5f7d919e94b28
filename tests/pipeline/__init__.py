"""The modules of the pipeline one by one, with real files, real stores and real servers; no daemon."""
