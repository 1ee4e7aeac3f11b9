"""The evidence pack: all that a publication rests on, in one file that anybody can recompute it from."""
