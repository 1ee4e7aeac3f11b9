"""The evidence pack: everything a publication rests on, in one file from which an auditor can recompute it."""
