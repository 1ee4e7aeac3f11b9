"""Reports: a page made from the published marts."""
